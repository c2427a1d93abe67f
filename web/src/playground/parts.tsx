/** Forms of objects and arrays in a request, such as layers, from their declarations. */

import { useId, useState } from "preact/hooks";
import type { Problem } from "../shared/service";
import { Control } from "./control";
import { contentOf, CONTENTS, newLayer, newPicture, reordered, titleOf } from "./layers";
import { allowed, arrayOf, changed, completed, isObject } from "./request";
import { label } from "./search";
import type { Group, Param, Plain, Size, Value, Values } from "./types";
import { WatermarkChoice } from "./watermark";

type Items = readonly Values[];

interface Known {
  parts: Group[];
  /** The size of the picture that lengths are of. */
  frame: Size;
  problems: Problem[];
}

interface ArrayProps extends Known {
  /** Where the request has the array. */
  path: string;
  part: string | undefined;
  most: number | undefined;
  items: Items;
  onEdit: (change: (items: Items) => Items, touched?: string) => void;
}

interface Selection {
  selected: number | null;
  onSelect: (place: number | null) => void;
}

/** An array of objects: each can be opened, ordered, duplicated and removed, and others added. */
export function ArrayField({ path, part, most = Infinity, items, onEdit, selected, onSelect, ...known }: ArrayProps & Selection) {
  const group = known.parts.find(({ key }) => key === part);
  const [adding, setAdding] = useState(false);
  const [dragged, setDragged] = useState<number | null>(null);
  if (!group) return null;
  const isFull = items.length >= most;
  const add = (item: Values) => {
    setAdding(false);
    onEdit((before) => [...before, item]);
    onSelect(items.length);
  };
  const move = (from: number, to: number) => {
    if (to < 0 || to >= items.length) return;
    onEdit((before) => reordered(before, from, to));
    onSelect(selected === from ? to : selected);
  };
  const isLayers = part === "layer";
  return (
    <div class="items">
      {items.length > 1 && isLayers && <p class="note">Each layer lies over those before it.</p>}
      <ol>
        {items.map((item, place) => (
          <li
            key={place}
            class="item"
            data-path={`${path}[${place}]`}
            onDragOver={(event) => {
              if (dragged === null) return; // a file, which the page takes
              event.preventDefault();
              event.stopPropagation();
            }}
            onDrop={(event) => {
              if (dragged === null) return;
              event.preventDefault();
              event.stopPropagation();
              move(dragged, place);
              setDragged(null);
            }}
          >
            <ItemHead
              name={`${place + 1} ${isLayers ? titleOf(item) : group.title}`}
              kind={isLayers && titleOf(item).toLowerCase() !== contentOf(item) ? (contentOf(item) ?? "") : ""}
              open={selected === place}
              wrong={known.problems.some((problem) => problem.path.startsWith(`${path}[${place}]`))}
              first={place === 0}
              last={place === items.length - 1}
              full={isFull}
              onToggle={() => onSelect(selected === place ? null : place)}
              onMove={(by) => move(place, place + by)}
              onDrag={(begins) => setDragged(begins ? place : null)}
              onDuplicate={() => {
                onEdit((before) => before.toSpliced(place, 0, item));
                onSelect(place + 1);
              }}
              onRemove={() => {
                onEdit((before) => before.toSpliced(place, 1));
                onSelect(null);
              }}
            />
            {selected === place && (
              <PartForm
                {...known}
                group={group}
                values={item}
                path={`${path}[${place}]`}
                onEdit={(change, touched) =>
                  onEdit((before) => {
                    const now = before[place];
                    return now === undefined ? before : before.with(place, change(now));
                  }, touched)
                }
              />
            )}
          </li>
        ))}
      </ol>
      <div class="add" role="group" aria-label={`Add to ${path}`}>
        {isLayers ? (
          CONTENTS.map((content) => (
            <button
              key={content}
              type="button"
              disabled={isFull}
              aria-expanded={content === "picture" ? adding : undefined}
              onClick={() => (content === "picture" ? setAdding(!adding) : add(newLayer(content)))}
            >
              + {label({ name: content })}
            </button>
          ))
        ) : (
          <button type="button" disabled={isFull} onClick={() => add(completed(group, {}, known.frame))}>
            + {group.title}
          </button>
        )}
      </div>
      {adding && (
        <WatermarkChoice value={undefined} error={undefined} onChange={(id) => id !== null && add(newPicture(String(id)))} />
      )}
    </div>
  );
}

interface HeadProps {
  name: string;
  kind: string;
  open: boolean;
  wrong: boolean;
  first: boolean;
  last: boolean;
  full: boolean;
  onToggle: () => void;
  onMove: (by: number) => void;
  onDrag: (begins: boolean) => void;
  onDuplicate: () => void;
  onRemove: () => void;
}

function ItemHead({ name, kind, open, wrong, first, last, full, onToggle, onMove, onDrag, onDuplicate, onRemove }: HeadProps) {
  return (
    <div
      class={`item-head${wrong ? " wrong" : ""}`}
      draggable={!(first && last)}
      onDragStart={(event) => {
        event.dataTransfer?.setData("text/plain", name);
        onDrag(true);
      }}
      onDragEnd={() => onDrag(false)}
    >
      <button
        type="button"
        aria-expanded={open}
        onClick={onToggle}
        onKeyDown={(event) => {
          const by = { ArrowUp: -1, ArrowDown: 1 }[event.key];
          if (by === undefined || !event.altKey) return;
          event.preventDefault();
          onMove(by);
        }}
      >
        <span class="chevron" aria-hidden="true" />
        <span class="name">{name}</span>
        {kind && <small>{kind}</small>}
      </button>
      <button type="button" class="clear" aria-label={`Move ${name} up`} disabled={first} onClick={() => onMove(-1)}>
        ↑
      </button>
      <button type="button" class="clear" aria-label={`Move ${name} down`} disabled={last} onClick={() => onMove(1)}>
        ↓
      </button>
      <button type="button" class="clear" aria-label={`Duplicate ${name}`} disabled={full} onClick={onDuplicate}>
        <svg viewBox="0 0 12 12" aria-hidden="true">
          <path d="M4.5 4.5h7v7h-7zM8 2.5v-2h-7.5v7.5h2" />
        </svg>
      </button>
      <button type="button" class="clear" aria-label={`Remove ${name}`} onClick={onRemove}>
        ×
      </button>
    </div>
  );
}

interface FormProps extends Known {
  group: Group;
  values: Values;
  path: string;
  onEdit: (change: (values: Values) => Values, touched?: string) => void;
}

/** What the layer itself has, too: it is shown only if the request has it. */
const RARE: Readonly<Record<string, readonly string[]>> = { text: ["width", "height"] };

/** Returns the parameters that a form shows. A layer stays what it is, and has what it can have. */
function shownParams(group: Group, values: Values): Param[] {
  const content = group.key === "layer" ? contentOf(values) : undefined;
  const others = group.key === "layer" ? CONTENTS.filter((other) => other !== content) : [];
  const excluded = group.rules.filter(({ rule, first = [] }) => rule === "NotTogether" && content && first.includes(content));
  const hidden = new Set([...others, ...(RARE[group.key] ?? []), ...excluded.flatMap((rule) => rule.second ?? [])]);
  return allowed(group, values).filter(({ name }) => !hidden.has(name) || values[name] !== undefined);
}

function PartForm({ group, values, path, onEdit, ...known }: FormProps) {
  const wrong = known.problems.find((problem) => problem.path === path);
  return (
    <div class="part">
      {wrong && <p class="error">{wrong.message}</p>}
      {shownParams(group, values).map((param) => (
        <PartParam key={param.name} {...known} {...{ group, param, values, onEdit }} path={`${path}.${param.name}`} />
      ))}
    </div>
  );
}

function PartParam({ group, param, values, path, onEdit, ...known }: FormProps & { param: Param }) {
  const value = values[param.name];
  const error = known.problems.find((problem) => problem.path === path)?.message;
  const set = (next: Value | null) => {
    if (next === null && param.required) return;
    onEdit((before) => changed(group, before, param.name, next, known.frame), path);
  };
  if (param.kind === "PartKind") {
    return <ObjectField {...known} {...{ group, param, value, path, error, set, onEdit }} />;
  }
  if (param.kind === "PartsKind") {
    return <NestedArray {...known} {...{ param, value, path, error, set }} />;
  }
  const plain = value as Plain | undefined;
  if (group.key === "picture" && param.name === "id") return <WatermarkChoice value={plain} error={error} onChange={set} />;
  return <Control {...{ param, values, error }} value={plain} size={known.frame} fixed={param.required} onChange={set} />;
}

interface NestedProps extends Known {
  param: Param;
  value: Value | undefined;
  path: string;
  error: string | undefined;
  set: (value: Value | null) => void;
}

/** An object that can be left out, such as a shadow. What a layer is has no switch. */
function ObjectField({ group, param, value, path, error, set, onEdit, ...known }: NestedProps & Pick<FormProps, "group" | "onEdit">) {
  const id = useId();
  const part = known.parts.find(({ key }) => key === param.part);
  const given = isObject(value);
  const isContent = group.key === "layer" && CONTENTS.some((content) => content === param.name);
  if (!part) return null;
  return (
    <fieldset class={`object${isContent ? " content" : ""}`} data-param={param.option}>
      {!isContent && (
        <div class={`control${given ? " given" : ""}`}>
          <div class="control-head">
            <label for={id} title={param.doc}>
              {label(param)}
            </label>
          </div>
          <input
            type="checkbox"
            role="switch"
            id={id}
            checked={given}
            onChange={(event) => set(event.currentTarget.checked ? completed(part, {}, known.frame) : null)}
          />
        </div>
      )}
      {error && <p class="error">{error}</p>}
      {given && (
        <PartForm
          {...known}
          group={part}
          values={value}
          path={path}
          onEdit={(change, touched) =>
            onEdit((before) => {
              const now = before[param.name];
              return isObject(now) ? { ...before, [param.name]: change(now) } : before;
            }, touched)
          }
        />
      )}
    </fieldset>
  );
}

/** An array within an object, such as the parts of a text. */
function NestedArray({ param, value, path, error, set, ...known }: NestedProps) {
  const [selected, select] = useState<number | null>(null);
  const items = arrayOf(value);
  return (
    <fieldset class="object" data-param={param.option}>
      <p class="array-name" title={param.doc}>
        {label(param)}
      </p>
      {error && <p class="error">{error}</p>}
      <ArrayField
        {...known}
        {...{ path, items, selected }}
        part={param.part}
        most={param.most}
        onSelect={select}
        onEdit={(change) => {
          const next = change(items);
          set(next.length ? next : null);
        }}
      />
    </fieldset>
  );
}
