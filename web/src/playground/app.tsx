/** The page: its state and its layout. */

import { useCallback, useEffect, useMemo, useRef, useState } from "preact/hooks";
import { Controls } from "./controls";
import { type Drawing, DrawingArea } from "./drawing";
import { Header } from "./header";
import { useHistory } from "./history";
import { KeyDialog, WRONG_KEY } from "../shared/key";
import { type Shown, usePreview } from "./preview";
import {
  before,
  type Document,
  fromDocument,
  groupsOf,
  itemsOf,
  missingIn,
  suffixOf,
  toDocument,
  valuesOf,
  withValues,
} from "./request";
import { LayerBoxes } from "./layerboxes";
import { useLooked } from "./looked";
import { Results } from "./results";
import * as calls from "./calls";
import { hasKey, keys, REFUSED, ServiceError, told } from "../shared/service";
import { hashOf, namedIn, parsed, type Shared, withoutKey } from "./share";
import { SourceBar, urlIn } from "./source";
import { Stage } from "./stage";
import { bytes, size } from "../shared/text";
import type { Declarations, Group, ImageFacts, Request, Size, Source } from "./types";

const NO_SIZE: Size = { width: 1000, height: 1000 };
const DRAWN_FORMAT = "webp";
const ADDRESS_MS = 300; // browsers limit how often the address may change
const TYPED = new Set(["text", "search", "url", "number", "password", "textarea"]);

export function App() {
  const [declarations, setDeclarations] = useState<Declarations | null>(null);
  const [failure, setFailure] = useState("");
  const shared = useMemo(readHash, []);
  useEffect(() => {
    calls.declarations().then(setDeclarations, (reason: unknown) => setFailure(told(reason)));
  }, []);
  if (failure) return <p class="failure" role="alert">{failure}</p>;
  if (!declarations) return null;
  return <Playground declarations={declarations} shared={shared} />;
}

function Playground({ declarations: declared, shared }: { declarations: Declarations; shared: Shared }) {
  const header = declared.metadata_header;
  const first = useMemo(() => fromDocument(shared.document, declared.groups), [shared, declared]);
  const history = useHistory(first);
  const { request, set, undo, redo } = history;
  const warning = request === first ? problemOf(shared, first, declared) : "";
  const groups = useMemo(() => groupsOf(request, declared.groups), [request, declared]);
  const declarations = useMemo(() => ({ ...declared, groups }), [declared, groups]);
  const [source, setSource] = useState<Source | null>(null);
  const [opening, setOpening] = useState(false);
  const [notice, setNotice] = useState("");
  const [locked, setLocked] = useState(!keys.get());
  const [asking, setAsking] = useState(locked);
  const [refusal, setRefusal] = useState("");
  const [drawing, setDrawing] = useState<Drawing | null>(null);
  const [selected, select] = useState<number | null>(null);
  const [dropping, setDropping] = useState(false);
  const [window, setWindow] = useState<Size | null>(null);

  const document = useMemo(() => toDocument(request, groups), [request, groups]);
  // A drawn crop is not part of the preview below it, so a new preview is made only if this text changes.
  const text = JSON.stringify(
    previewed(drawing ? before(request, groups, drawing.group) : request, drawing !== null, groups),
  );
  const asked = useMemo(() => JSON.parse(text) as Document, [text]);
  const { shown: own, error, busy, sent } = usePreview(locked ? null : source, asked, window, header);
  const { looking, shown, made, labels, busy: isLooking } = useLooked(own, source, window, header);
  const result = shown?.result ?? null;
  const look = looking.show;

  const lock = useCallback(() => {
    if (hasKey()) {
      setSource((same) => same && { ...same });
      return;
    }
    setRefusal(WRONG_KEY);
    setLocked(true);
    setAsking(true);
  }, []);
  const resize = useCallback((next: Size) => {
    setWindow((before) => (before?.width === next.width && before.height === next.height ? before : next));
  }, []);
  const newest = useRef<Promise<Source> | null>(null);
  const open = useCallback(async (opening: Promise<Source>) => {
    newest.current = opening; // an earlier one may end later
    setOpening(true);
    setNotice("");
    try {
      const opened = await opening;
      if (newest.current === opening) setSource(opened);
    } catch (reason) {
      if (newest.current !== opening) return;
      if (reason instanceof ServiceError && reason.status === 401) lock();
      else setNotice(told(reason));
    } finally {
      if (newest.current === opening) setOpening(false);
    }
  }, [lock]);
  const openFile = useCallback(
    (file: File) => void open(Promise.resolve({ kind: "file", name: file.name, blob: file })),
    [open],
  );

  useEffect(() => {
    if (locked) return;
    const first = declared.examples.find((name) => name.endsWith(".jpg")) ?? declared.examples[0];
    const name = shared.example ?? first;
    if (shared.url) void open(calls.fetched(shared.url));
    else if (name) void open(calls.example(name, declared.examples));
  }, [locked, shared, declared, open]);

  const link = addressOf(hashOf(source ?? namedIn(shared), document));
  useEffect(() => {
    if (warning) return; // writing the address would drop parts of its request
    const timer = setTimeout(() => globalThis.history.replaceState(null, "", link), ADDRESS_MS);
    return () => clearTimeout(timer);
  }, [link, warning]);
  useEffect(() => {
    if (error?.status === 401) lock();
  }, [error, lock]);
  const escape = useCallback(() => {
    setDrawing(null);
    select(null);
    look(null);
  }, [look]);
  useShortcuts(undo, redo, escape);
  useEffect(() => {
    const load = () => location.reload(); // somebody pasted the address of another request
    addEventListener("hashchange", load);
    return () => removeEventListener("hashchange", load);
  }, []);

  const input = result?.facts.input;
  const isSelected = selected !== null && selected < itemsOf(request, "layers").length;
  const facts = input ? { ...input, ...upright(input) } : null;
  const message = notice || (error?.message ?? warning);
  const wrong = error?.status === REFUSED ? error.message : undefined;
  return (
    <div
      class={`page${dropping ? " dropping" : ""}`}
      onDragOver={(event) => {
        event.preventDefault();
        setDropping(true);
      }}
      onDragLeave={(event) => {
        if (event.relatedTarget === null) setDropping(false);
      }}
      onDrop={(event) => {
        event.preventDefault();
        setDropping(false);
        const file = event.dataTransfer?.files[0];
        const url = event.dataTransfer && urlIn(event.dataTransfer);
        if (file) openFile(file);
        else if (url) void open(calls.fetched(url));
      }}
    >
      <Header {...{ declarations: declared, history, document }} link={() => link} />
      <main>
        <SourceBar
          examples={declarations.examples}
          source={source}
          name={(shown?.source ?? source)?.name}
          facts={facts}
          onTyped={() => setNotice("")}
          onFile={openFile}
          onExample={(name) => void open(calls.example(name, declared.examples))}
          onUrl={(url) => void open(calls.fetched(url))}
        />
        <Stage
          shown={shown}
          labels={labels}
          busy={busy || opening || isLooking}
          waiting={waitingFor(source, sent, opening)}
          stale={error !== null}
          plain={drawing !== null || isSelected}
          onWindow={resize}
          onDownload={() => {
            if (made) download(made, declarations).catch((reason: unknown) => setNotice(told(reason)));
          }}
        >
          {drawing && result && shown?.document === asked && shown.source === source && (
            <DrawingArea
              drawing={drawing}
              size={result.facts.output}
              values={valuesOf(request, drawing.group)}
              onChange={(values) => {
                const group = groups.find((item) => item.key === drawing.group);
                if (group) set((request) => withValues(request, group, values), drawing.group);
              }}
            />
          )}
          {!drawing && shown && shown.source === source && (
            <LayerBoxes {...{ shown, request, selected }} onSelect={select} onChange={set} />
          )}
        </Stage>
        {message && (
          <p class="failure" role="alert">
            {message}
          </p>
        )}
        {locked && !asking && (
          <p class="failure">
            Previews need an API key.{" "}
            <button type="button" onClick={() => setAsking(true)}>
              Enter a key
            </button>
          </p>
        )}
        <p class="hidden" role="status">
          {opening ? "Opening the picture …" : result && !busy && !error ? spoken(result.facts.output) : ""}
        </p>
        <Results {...{ declarations, source, request, document, own, shown, looking, wrong, set }} />
      </main>
      <Controls
        groups={groups}
        parts={declared.parts}
        request={request}
        size={facts ?? NO_SIZE}
        frame={result?.facts.output ?? facts ?? NO_SIZE}
        selected={selected}
        onSelect={select}
        problems={error?.problems ?? []}
        drawing={drawing}
        onDraw={setDrawing}
        onChange={set}
      />
      {asking && (
        <KeyDialog
          note="Previews count in the quota of the key, which stays in this tab."
          refusal={refusal}
          onClose={() => setAsking(false)}
          onKey={(key) => {
            keys.set(key);
            setRefusal("");
            setLocked(false);
            setAsking(false);
            setSource((same) => same && { ...same });
          }}
        />
      )}
    </div>
  );
}

/** Returns what the page waits for before it can show a new source. */
function waitingFor(source: Source | null, sent: number | null, opening: boolean): string {
  if (opening) return "Loading the picture …";
  return sent === null || !source ? "" : `Sending ${source.name}: ${Math.floor(sent * 100)} %`;
}

/** Saves the result itself, which what is shown may be a copy of. */
async function download({ source, document, result }: Shown, declarations: Declarations): Promise<void> {
  const { shown } = await calls.preview({ source, document }, declarations.metadata_header);
  const link = globalThis.document.createElement("a");
  link.href = URL.createObjectURL(shown);
  link.download = `${source.name.replace(/\.[^.]*$/, "")}-result${suffixOf(declarations, result.facts.output.format)}`;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

/** Reads the fragment of the address. A key in it is stored, and removed from the address. */
function readHash(): Shared {
  const { key, ...shared } = parsed(location.hash);
  if (key) {
    keys.set(key);
    window.history.replaceState(null, "", addressOf(withoutKey(location.hash)));
  }
  return shared;
}

function addressOf(hash: string): string {
  return location.origin + location.pathname + hash;
}

/** Returns a warning if the page cannot show all of the request in its address. */
function problemOf(shared: Shared, request: Request, { groups }: Declarations): string {
  const missing = missingIn(request, shared.document, groups);
  const left = `The request in the address has parts that this page cannot show: ${missing.join(", ")}.`;
  return shared.problem ?? (missing.length ? left : "");
}

/** Returns the document of the preview: the request, or the part before the crop while that is drawn. */
function previewed(request: Request, drawing: boolean, groups: Group[]): Document {
  const document = toDocument(request, groups);
  return drawing ? { ...document, output: { ...request.output, format: DRAWN_FORMAT } } : document;
}

/** Returns the size of a picture after its EXIF orientation is applied. */
function upright({ width, height, orientation }: ImageFacts): Size {
  return orientation > 4 ? { width: height, height: width } : { width, height };
}

function spoken(output: { format: string; width: number; height: number; bytes: number }): string {
  return `Result: ${output.format}, ${size(output)} pixels, ${bytes(output.bytes)}`;
}

function useShortcuts(undo: () => void, redo: () => void, escape: () => void): void {
  useEffect(() => {
    const listen = (event: KeyboardEvent) => {
      if (event.key === "Escape") escape();
      const field = event.target instanceof HTMLInputElement || event.target instanceof HTMLTextAreaElement;
      const typing = field && TYPED.has((event.target as HTMLInputElement).type);
      if (!(event.ctrlKey || event.metaKey) || typing) return;
      const key = event.key.toLowerCase();
      if (key !== "z" && key !== "y") return;
      event.preventDefault();
      if (key === "y" || event.shiftKey) redo();
      else undo();
    };
    addEventListener("keydown", listen);
    return () => removeEventListener("keydown", listen);
  }, [undo, redo, escape]);
}
