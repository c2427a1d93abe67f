/** The bar at the top: undo, redo, reset, presets, share. */

import { Copy } from "./copy";
import type { History } from "./history";
import { Presets } from "./presets";
import type { Document } from "./request";
import { address } from "../shared/service";
import type { Declarations } from "./types";

interface Props {
  declarations: Declarations;
  history: History;
  document: Document;
  /** Returns an address that opens the page with the same source and request. */
  link: () => string;
}

export function Header({ declarations, history, document, link }: Props) {
  return (
    <header>
      <h1>
        imgsvc <span>playground</span>
      </h1>
      <div class="tools" role="toolbar" aria-label="Request">
        <button type="button" disabled={!history.canUndo} onClick={history.undo} title="Undo (Ctrl+Z)">
          Undo
        </button>
        <button type="button" disabled={!history.canRedo} onClick={history.redo} title="Redo (Ctrl+Shift+Z)">
          Redo
        </button>
        <button
          type="button"
          disabled={Object.keys(history.request).length === 0}
          onClick={() => history.set(() => ({}))}
          title="Remove everything from the request"
        >
          Reset
        </button>
        <Presets
          groups={declarations.groups}
          request={history.request}
          document={document}
          onLoad={(request) => history.set(() => request)}
        />
        <Copy text={link} label="Copy link" />
        <a class="button" href={address("dashboard")}>
          Dashboard
        </a>
      </div>
      <small class="version">{declarations.version}</small>
    </header>
  );
}
