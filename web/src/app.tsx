/** The page: its state, and how its parts lie. */

import { useCallback, useEffect, useMemo, useState } from "preact/hooks";
import { Controls } from "./controls";
import { CropDrawing } from "./crop";
import { Header } from "./header";
import { useHistory } from "./history";
import { KeyDialog } from "./key";
import { usePreview } from "./preview";
import { before, fromDocument, toDocument, valuesOf, withValues } from "./request";
import { Results } from "./results";
import * as service from "./service";
import { readAddress, type Shared, writeAddress } from "./share";
import { SourceBar } from "./source";
import { Stage } from "./stage";
import { bytes, size } from "./text";
import type { Declarations, ImageFacts, Request, Size, Source, Value } from "./types";

const NO_SIZE: Size = { width: 1000, height: 1000 };
const DRAWN_FORMAT = "webp";

export function App() {
  const [declarations, setDeclarations] = useState<Declarations | null>(null);
  const [failure, setFailure] = useState("");
  const shared = useMemo(readAddress, []);
  useEffect(() => {
    service.declarations().then(setDeclarations, (reason: unknown) => setFailure(reason instanceof Error ? reason.message : String(reason)));
  }, []);
  if (failure) return <p class="failure" role="alert">{failure}</p>;
  if (!declarations) return null;
  return <Playground declarations={declarations} shared={shared} />;
}

function Playground({ declarations, shared }: { declarations: Declarations; shared: Shared }) {
  const { groups, metadata_header: header } = declarations;
  const history = useHistory(useMemo(() => fromDocument(shared.document, groups), [shared, groups]));
  const { request, set, undo, redo } = history;
  const [source, setSource] = useState<Source | null>(null);
  const [original, setOriginal] = useState<Blob | null>(null);
  const [notice, setNotice] = useState("");
  const [locked, setLocked] = useState(!service.keys.get());
  const [drawing, setDrawing] = useState(false);

  const document = useMemo(() => toDocument(request, groups), [request, groups]);
  const asked = useMemo(
    () => previewed(drawing ? before(request, groups, "crop") : request, drawing, source, declarations),
    [request, groups, drawing, source, declarations],
  );
  const { result, error, busy } = usePreview(locked ? null : source, asked, header);

  const open = useCallback(async (opening: Promise<Source>) => {
    setNotice("Opening the picture …");
    try {
      setSource(await opening);
      setNotice("");
    } catch (reason) {
      if (reason instanceof service.ServiceError && reason.status === 401) setLocked(true);
      setNotice(reason instanceof Error ? reason.message : String(reason));
    }
  }, []);

  useEffect(() => {
    if (locked) return;
    const first = declarations.examples.find((name) => name.endsWith(".jpg")) ?? declarations.examples[0];
    const name = shared.example ?? first;
    if (shared.url) void open(service.fetched(shared.url, header));
    else if (name) void open(service.example(name));
  }, [locked, shared, declarations, header, open]);

  useEffect(() => {
    if (!source) return;
    const abort = new AbortController();
    setOriginal(null);
    service.viewable(source.blob, source.name, header, abort.signal).then(setOriginal, () => undefined);
    return () => abort.abort();
  }, [source, header]);

  useEffect(() => writeAddress(source, document), [source, document]);
  useEffect(() => {
    if (error?.status === 401) setLocked(true);
  }, [error]);
  useShortcuts(undo, redo);

  const sourceSize = result ? upright(result.facts.input) : NO_SIZE;
  const message = error?.message ?? notice;
  return (
    <div
      class="page"
      onDragOver={(event) => event.preventDefault()}
      onDrop={(event) => {
        event.preventDefault();
        const file = event.dataTransfer?.files[0];
        if (file) setSource(fromFile(file));
      }}
    >
      <Header {...{ declarations, history, document }} />
      <main>
        <SourceBar
          examples={declarations.examples}
          source={source}
          facts={result?.facts.input}
          onFile={(file) => setSource(fromFile(file))}
          onExample={(name) => void open(service.example(name))}
          onUrl={(url) => void open(service.fetched(url, header))}
        />
        <Stage original={original} result={result} busy={busy} plain={drawing}>
          {drawing && result && (
            <CropDrawing
              size={result.facts.output}
              values={valuesOf(request, "crop")}
              onChange={(values) => {
                const crop = groups.find((group) => group.key === "crop");
                if (crop) set(withValues(request, crop, values), "crop");
              }}
            />
          )}
        </Stage>
        {message && (
          <p class="failure" role="alert">
            {message}
          </p>
        )}
        <p class="hidden" role="status">
          {result && !busy && !error ? spoken(result.facts.output) : ""}
        </p>
        <Results {...{ declarations, source, request, document, result, set }} />
      </main>
      <Controls
        groups={groups}
        request={request}
        size={sourceSize}
        problems={error?.problems ?? []}
        drawing={drawing}
        onDraw={() => setDrawing(!drawing)}
        onChange={(next, touched) => set(next, touched)}
      />
      {locked && (
        <KeyDialog
          onKey={(key) => {
            service.keys.set(key);
            setLocked(false);
            setSource((same) => same && { ...same });
          }}
        />
      )}
    </div>
  );
}

/** Returns what is asked for the preview: the request, or what comes before the crop that is drawn. */
function previewed(request: Request, drawing: boolean, source: Source | null, declarations: Declarations) {
  const document = toDocument(request, declarations.groups);
  const output: Record<string, Value> = { ...request.output };
  // A fetched source is here as a copy in another format.
  const own = declarations.formats.some((format) => format.name === source?.format) ? source?.format : undefined;
  if (drawing) output.format = DRAWN_FORMAT;
  else if (own !== undefined && !output.format) output.format = own;
  return Object.keys(output).length ? { ...document, output } : document;
}

/** Returns the size of a picture after its EXIF orientation is applied. */
function upright({ width, height, orientation }: ImageFacts): Size {
  return orientation > 4 ? { width: height, height: width } : { width, height };
}

function fromFile(file: File): Source {
  return { kind: "file", name: file.name, blob: file };
}

function spoken(output: { format: string; width: number; height: number; bytes: number }): string {
  return `Result: ${output.format}, ${size(output)} pixels, ${bytes(output.bytes)}`;
}

function useShortcuts(undo: () => void, redo: () => void): void {
  useEffect(() => {
    const listen = (event: KeyboardEvent) => {
      const typing = event.target instanceof HTMLInputElement && event.target.type === "text";
      if (!(event.ctrlKey || event.metaKey) || typing) return;
      const key = event.key.toLowerCase();
      if (key !== "z" && key !== "y") return;
      event.preventDefault();
      if (key === "y" || event.shiftKey) redo();
      else undo();
    };
    addEventListener("keydown", listen);
    return () => removeEventListener("keydown", listen);
  }, [undo, redo]);
}
