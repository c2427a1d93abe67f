/** All controls: a folded group for each operation and filter, found by a search box. */

import { useEffect, useState } from "preact/hooks";
import type { Problem } from "../shared/service";
import { Control } from "./control";
import { type Drawing, drawings } from "./drawing";
import type { Change } from "./history";
import { ArrayField } from "./parts";
import { allowed, arrayOf, groupPath, isArray, valuesOf, without, withValue } from "./request";
import { found } from "./search";
import type { Group, Param, Plain, Request, Size } from "./types";
import { WatermarkChoice } from "./watermark";

interface Props {
  groups: Group[];
  parts: Group[];
  request: Request;
  /** The size of the source. */
  size: Size;
  /** The size of the result. */
  frame: Size;
  /** The layer that is edited. */
  selected: number | null;
  onSelect: (place: number | null) => void;
  problems: Problem[];
  drawing: Drawing | null;
  onDraw: (drawing: Drawing | null) => void;
  onChange: (change: Change, touched?: string) => void;
}

const LAYERS = "layers";
const FIRST = "output"; // format and quality matter to everybody; the other groups stand in the order of application
const OPEN_AT_FIRST = [FIRST, "resize", "adjust"];

export function Controls(props: Props) {
  const { groups, request, size, problems, selected, drawing, onDraw, onChange } = props;
  const [search, setSearch] = useState("");
  const [open, setOpen] = useState<ReadonlySet<string>>(new Set(OPEN_AT_FIRST));
  const [opened, setOpened] = useState<number | null>(null); // the item of an array that is not on the picture
  useEffect(() => {
    if (selected !== null) setOpen((before) => new Set([...before, LAYERS]));
  }, [selected]);
  const ordered = [...groups.filter(({ key }) => key === FIRST), ...groups.filter(({ key }) => key !== FIRST)];
  const results = found(ordered, search, (group) => allowed(group, valuesOf(request, group.key)));
  const toggle = (key: string) => {
    setOpen((before) => new Set(before.has(key) ? [...before].filter((item) => item !== key) : [...before, key]));
  };
  return (
    <aside class="controls" aria-label="Parameters">
      <div class="search">
        <input
          type="search"
          aria-label="Find a parameter"
          placeholder="Find a parameter"
          value={search}
          onInput={(event) => setSearch(event.currentTarget.value)}
        />
      </div>
      {results.map(({ group, params }) => {
        const values = valuesOf(request, group.key);
        const shown = search !== "" || open.has(group.key);
        const touched = Object.keys(values).length > 0;
        const wrong = problems.find((problem) => problem.path === groupPath(group));
        return (
          <section key={group.key} class={`group${touched ? " given" : ""}`} data-group={group.key}>
            <h2>
              <button
                type="button"
                aria-expanded={shown}
                title={group.doc}
                onClick={() => {
                  if (search === "") toggle(group.key);
                }}
              >
                <span class="chevron" aria-hidden="true" />
                {group.title}
                {group.filter && <small>filter</small>}
              </button>
              {touched && (
                <button
                  type="button"
                  class="clear"
                  aria-label={`Reset ${group.title}`}
                  onClick={() => onChange((request) => without(request, group.key))}
                >
                  ×
                </button>
              )}
            </h2>
            {shown && (
              <div class="group-body">
                {drawings(group, values).map((offer) => {
                  const active = drawing?.group === offer.group && drawing.what === offer.what;
                  return (
                    <button
                      key={offer.what}
                      type="button"
                      class="draw"
                      aria-pressed={active}
                      onClick={() => onDraw(active ? null : offer)}
                    >
                      {active ? "Done" : offer.what === "box" ? "Draw on the picture" : "Pick the point on the picture"}
                    </button>
                  );
                })}
                {wrong && <p class="error">{wrong.message}</p>}
                {isArray(group) && (
                  <ArrayField
                    {...props}
                    {...(group.key === LAYERS ? {} : { frame: size, selected: opened, onSelect: setOpened })}
                    path={group.key}
                    part={group.params[0]?.part}
                    most={group.params[0]?.most}
                    items={arrayOf(values[group.key])}
                    onEdit={(change, touched) =>
                      onChange((request) => {
                        const items = change(arrayOf(valuesOf(request, group.key)[group.key]));
                        return withValue(request, group, group.key, items.length ? items : null, size);
                      }, touched)
                    }
                  />
                )}
                {!isArray(group) && params.map((param) => (
                  <ParamControl
                    key={param.name}
                    {...{ group, param, request, size, onChange }}
                    error={problems.find((problem) => problem.path === `${groupPath(group)}.${param.name}`)?.message}
                  />
                ))}
              </div>
            )}
          </section>
        );
      })}
      {results.length === 0 && <p class="nothing">No parameter found. Try another word, or a part of one.</p>}
    </aside>
  );
}

interface ParamProps {
  group: Group;
  param: Param;
  request: Request;
  size: Size;
  error: string | undefined;
  onChange: (change: Change, touched?: string) => void;
}

function ParamControl({ group, param, request, size, error, onChange }: ParamProps) {
  const values = valuesOf(request, group.key);
  const value = values[param.name] as Plain | undefined;
  const change = (next: typeof value | null) =>
    onChange((request) => withValue(request, group, param.name, next ?? null, size), param.option);
  if (group.key === "watermark" && param.name === "id") {
    return <WatermarkChoice value={value} error={error} onChange={change} />;
  }
  return <Control {...{ param, value, values, size, error }} onChange={change} />;
}
