/** Requests: pure functions that change them and write them as JSON documents. */

import type { Declarations, Group, Param, Request, Rule, Size, Value, Values } from "./types";

export type Document = Record<string, unknown>;

const NO_VALUES: Values = {};
const COLORS = ["f2c79b", "1d2b64"];

/** Returns the values of a group. */
export function valuesOf(request: Request, group: string): Values {
  return request[group] ?? NO_VALUES;
}

/** Returns the JSON document of a request; groups stand in the order of application. */
export function toDocument(request: Request, groups: Group[]): Document {
  const found: Document = {};
  const filters: Document = {};
  for (const { key, filter } of groups) {
    const values = request[key];
    if (values) (filter ? filters : found)[key] = values;
    if (filter && values) found.filter = filters;
  }
  return found;
}

/** Returns the request of a document, without what the groups do not know. */
export function fromDocument(document: Document, groups: Group[]): Request {
  const filters = filtersOf(document.filter ?? document.stylize);
  const found: Record<string, Values> = {};
  for (const group of groups) {
    const part = (group.filter ? filters : document)[group.key];
    if (typeof part !== "object" || part === null) continue;
    const known = group.params.filter((param) => isValue((part as Document)[param.name]));
    const values = known.map((param) => [param.name, (part as Document)[param.name] as Value]);
    if (values.length) found[group.key] = Object.fromEntries(values) as Values;
  }
  return found;
}

function filtersOf(filter: unknown): Document {
  if (Array.isArray(filter)) return Object.assign({}, ...(filter as Document[])) as Document;
  return typeof filter === "object" && filter !== null ? (filter as Document) : {};
}

function isValue(value: unknown): value is Value {
  return ["string", "number", "boolean"].includes(typeof value);
}

/**
 * Returns a request with a parameter set, or unset by null.
 *
 * What the parameter needs is filled in, and what it excludes is removed, so that one touch of a control
 * makes a valid request.
 */
export function withValue(request: Request, group: Group, name: string, value: Value | null, size: Size): Request {
  const values = valuesOf(request, group.key);
  const param = group.params.find((item) => item.name === name);
  const usual = param && (value === param.default || (value === param.neutral && !param.required));
  const changed = value === null || usual ? except(values, [name]) : { ...values, [name]: value };
  return withValues(request, group, settled(group, changed, name, size));
}

/** Returns a request with the values of a group, or without the group if they change nothing. */
export function withValues(request: Request, group: Group, values: Values): Request {
  const found = { ...request, [group.key]: values };
  const given = Object.entries(values);
  const idle = given.every(([name, value]) => group.params.find((item) => item.name === name)?.neutral === value);
  return given.length === 0 || idle ? without(found, group.key) : found;
}

/** Returns a request without a group. */
export function without(request: Request, key: string): Request {
  return except(request, [key]);
}

function except<T>(record: Readonly<Record<string, T>>, names: string[]): Record<string, T> {
  return Object.fromEntries(Object.entries(record).filter(([name]) => !names.includes(name)));
}

/** Returns the parameters of a group that its other values do not exclude. */
export function allowed(group: Group, values: Values): Param[] {
  const excluded = group.rules.filter((rule) => excludes(rule, values) && !rule.values?.length);
  const names = new Set(excluded.flatMap((rule) => rule.names ?? []));
  return group.params.filter((param) => !names.has(param.name));
}

function settled(group: Group, given: Values, touched: string, size: Size): Values {
  let values: Record<string, Value> = { ...given };
  const has = (name: string) => values[name] !== undefined;
  const fill = (name: string) => {
    const param = group.params.find((item) => item.name === name);
    if (param && !has(name)) values[name] = initial(param, group, size);
  };
  const drop = (names: string[]) => {
    values = except(values, names.filter((name) => name !== touched));
  };
  if (Object.keys(values).length === 0) return values;
  for (const rule of group.rules) {
    const { name = "", other = "", first = [], second = [], names = [] } = rule;
    if (rule.rule === "NotTogether" && first.includes(touched) && has(touched)) drop(second);
    if (rule.rule === "NotTogether" && second.includes(touched) && has(touched)) drop(first);
    if (rule.choice === touched && excludes(rule, values)) {
      drop(rule.values?.length ? names.filter((item) => rule.values?.includes(values[item] ?? "")) : names);
    }
    if (rule.rule === "Needs" && touched === name && has(name)) fill(other);
    if (rule.rule === "Needs" && !has(other)) drop([name]);
  }
  if (!has(touched) && group.params.find((param) => param.name === touched)?.required) return {};
  group.params.filter((param) => param.required).forEach((param) => fill(param.name));
  for (const rule of group.rules) {
    const names = rule.names ?? [];
    if (rule.rule === "RequiredWhen" && holds(rule, values)) names.forEach(fill);
    if (rule.rule === "AtLeastOne" && !names.some(has)) names.slice(0, 1).forEach(fill);
  }
  return values;
}

/** Returns true if a rule excludes its parameters, or some values of them. */
function excludes(rule: Rule, values: Values): boolean {
  return (rule.rule === "NotWhen" && holds(rule, values)) || (rule.rule === "OnlyWhen" && !holds(rule, values));
}

function holds(rule: Rule, values: Values): boolean {
  const value = values[rule.choice ?? ""];
  return value === undefined ? rule.default === true : rule.options?.includes(value) === true;
}

/** Returns a value to begin with, which shows what the parameter does. */
function initial(param: Param, group: Group, size: Size): Value {
  const { minimum = 0, maximum = 1, neutral } = param;
  switch (param.kind) {
    case "Choice":
      return param.options?.[0] ?? "";
    case "HexColor":
      return COLORS[group.params.filter((item) => item.kind === "HexColor").indexOf(param)] ?? "808080";
    case "Boolean":
      return true;
    case "AspectRatio":
      return "1:1";
    case "Text":
      return "";
    default:
      if (param.unit === "pixels") return Math.min(maximum, Math.max(minimum, pixels(param.name, size)));
      return neutral === null || neutral === minimum || neutral === maximum ? (minimum + maximum) / 2 : neutral;
  }
}

/** Returns the size that a parameter in pixels would have if nothing was done. */
export function pixels(name: string, size: Size): number {
  if (name === "width" || name === "height") return size[name];
  return Math.round(Math.min(size.width, size.height) / 10);
}

/** Returns the path of a parameter in messages of the service. */
export function pathOf(group: Group, param: Param): string {
  return `${group.filter ? "filter." : ""}${group.key}.${param.name}`;
}

/** Returns the groups that come before one of them, as a request that stops there. */
export function before(request: Request, groups: Group[], key: string): Request {
  const index = groups.findIndex((group) => group.key === key);
  const earlier = new Set(groups.slice(0, index).map((group) => group.key));
  return Object.fromEntries(Object.entries(request).filter(([name]) => earlier.has(name)));
}

/** Returns the file suffix of a result. */
export function suffixOf(declarations: Declarations, format: string): string {
  return declarations.formats.find((item) => item.name === format)?.suffix ?? "";
}
