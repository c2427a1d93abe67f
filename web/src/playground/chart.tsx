/** The chart of bytes against look: a curve for each format, and a line at a look. */

import { across, type Curves, described, down, type Frame, frameOf, LEAST, lookAt, nearest, ticks } from "./curve";
import * as text from "../shared/text";

interface Props {
  curves: Curves;
  /** Files as the request asks for them, by format. */
  asked: Curves;
  look: number;
  /** Is called with the look of a place, and the format of the curve there. */
  onChoose: (look: number, format: string | undefined) => void;
}

const LOOKS = [30, 50, 70, 80, 90];

export function Chart({ curves, asked, look, onChoose }: Props) {
  const frame = frameOf({ ...curves, ...prefixed(asked) });
  const press = (event: MouseEvent) => {
    const area = (event.currentTarget as HTMLElement).getBoundingClientRect();
    const found = lookAt(((event.clientX - area.left) / area.width) * 100);
    const place = ((event.clientY - area.top) / area.height) * 100;
    onChoose(found, frame ? nearest(curves, frame, found, place) : undefined);
  };
  return (
    <div class="chart" role="img" aria-label={described(curves, text.bytes)}>
      <div class="plot" onClick={press}>
        {frame && <Lines {...{ curves, frame, look }} />}
        {frame && Object.entries(asked).map(([format, curve]) => <Marks key={format} {...{ format, curve, frame }} is="asked" />)}
        {frame && Object.entries(curves).map(([format, curve]) => <Marks key={format} {...{ format, curve, frame }} />)}
      </div>
      {LOOKS.map((at) => (
        <span key={at} class="of-look" style={{ "--at": across(at) / 100 }}>
          {at}
        </span>
      ))}
      {frame &&
        ticks(frame).map((size) => (
          <span key={size} class="of-bytes" style={{ "--at": down(frame, size) / 100 }}>
            {text.round(size)}
          </span>
        ))}
    </div>
  );
}

/** Names curves so that they lie beside others of the same formats. */
function prefixed(curves: Curves): Curves {
  return Object.fromEntries(Object.entries(curves).map(([format, curve]) => [`asked ${format}`, curve]));
}

function Lines({ curves, frame, look }: { curves: Curves; frame: Frame; look: number }) {
  return (
    <svg viewBox="0 0 100 100" preserveAspectRatio="none">
      {ticks(frame).map((size) => (
        <line key={size} class="grid" x1="0" x2="100" y1={down(frame, size)} y2={down(frame, size)} />
      ))}
      <line class="at" x1={across(look)} x2={across(look)} y1="0" y2="100" />
      {Object.entries(curves).map(([format, curve]) => (
        <polyline
          key={format}
          class={`curve of-${format}`}
          points={curve.map((point) => `${across(point.look)},${down(frame, point.bytes)}`).join(" ")}
        />
      ))}
    </svg>
  );
}

function Marks({ format, curve, frame, is = "" }: { format: string; curve: Curves[string]; frame: Frame; is?: string }) {
  return (
    <>
      {curve
        .filter((point) => point.look >= LEAST)
        .map((point) => (
          <span
            key={`${point.look} ${point.bytes}`}
            class={`mark of-${format} ${is}`}
            title={`${format}${point.quality === null ? "" : `, quality ${point.quality}`}: ${text.bytes(point.bytes)}, look ${point.look.toFixed(1)}`}
            style={{ left: `${across(point.look)}%`, top: `${down(frame, point.bytes)}%` }}
          />
        ))}
    </>
  );
}
