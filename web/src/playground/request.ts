/** Requests: pure functions that change them and write them as JSON documents. */

import type { Declarations, Group, Param, Plain, Request, Rule, Size, Value, Values } from "./types";

export type Document = Record<string, unknown>;

const NO_VALUES: Values = {};
const AFTER_ALL = 1000; // more than an array can have
const COLORS = ["f2c79b", "1d2b64"];

/** Returns the values of a group. */
export function valuesOf(request: Request, group: string): Values {
  return request[group] ?? NO_VALUES;
}

/**
 * Returns the groups of a request in the order of application.
 *
 * An array of filters has its own order, and may contain a filter twice. The keys of its filters begin with a number.
 * The filters that it does not contain come after it.
 */
export function groupsOf(request: Request, declared: Group[]): Group[] {
  const numbered = Object.keys(request).filter(isNumbered);
  if (numbered.length === 0) return declared;
  const filters = declared.filter((group) => group.filter);
  const named = new Set(numbered.map(nameOf));
  const others = filters.map((group, index) => `${AFTER_ALL + index}:${group.key}`);
  const keys = [...numbered, ...others.filter((key) => !named.has(nameOf(key)))].sort((a, b) => parseInt(a) - parseInt(b));
  const listed = keys.flatMap((key) => {
    const place = numbered.filter((other) => parseInt(other) < parseInt(key)).length;
    return filters.filter((group) => group.key === nameOf(key)).map((group) => ({ ...group, key, place }));
  });
  const first = declared.findIndex((group) => group.filter);
  const rest = declared.filter((group) => !group.filter);
  return [...rest.slice(0, first), ...listed, ...rest.slice(first)];
}

/** Returns the JSON document of a request; groups stand in the order of application. */
export function toDocument(request: Request, groups: Group[]): Document {
  const found: Document = {};
  const filters: [string, Values][] = [];
  const listed = groups.some((group) => group.place !== undefined);
  for (const group of groups) {
    const { key, filter } = group;
    const values = request[key];
    if (!values) continue;
    if (filter) filters.push([nameOf(key), values]);
    else found[key] = isArray(group) ? values[key] : values;
    if (filter) found.filter = listed ? filters.map((one) => Object.fromEntries([one])) : Object.fromEntries(filters);
  }
  return found;
}

/** Returns the request of a document, without parts that no group declares. */
export function fromDocument(document: Document, declared: Group[]): Request {
  const found: Record<string, Values> = {};
  const filters = filtersOf(document, declared);
  for (const [key, part] of [...Object.entries(document), ...filters]) {
    const group = declared.find((item) => item.key === nameOf(key) && item.filter === filters.some(([one]) => one === key));
    if (group && isArray(group) && Array.isArray(part)) {
      const items = part.filter(isObject).map(withoutNulls);
      if (items.length) found[key] = { [key]: items };
    }
    if (!group || !isObject(part)) continue;
    const known = group.params.filter((param) => isValue(part[param.name]));
    const values = known.map((param) => [param.name, part[param.name] as Value]);
    if (values.length) found[key] = Object.fromEntries(values) as Values;
  }
  return found;
}

/** Returns the paths of values in a document that are missing in its request. */
export function missingIn(request: Request, document: Document, groups: Group[]): string[] {
  const known = new Set(paths(toDocument(request, groupsOf(request, groups))));
  return [...new Set(paths(document))].filter((path) => !known.has(path));
}

/** Returns the paths of all values in a document, without the numbers of filters. */
function paths(part: unknown, path = ""): string[] {
  if (part === null) return [];
  if (Array.isArray(part)) return part.flatMap((item) => paths(item, path));
  if (!isObject(part) || (path && Object.keys(part).length === 0)) return [path];
  return Object.entries(part).flatMap(([name, value]) =>
    paths(value, path ? `${path}.${name}` : name === "stylize" ? "filter" : name),
  );
}

/** Returns the filters of a document by key. Keys are numbered if the order is not the usual one. */
function filtersOf(document: Document, declared: Group[]): [string, unknown][] {
  const filter = document.filter ?? document.stylize;
  if (typeof filter !== "object" || filter === null) return [];
  if (!Array.isArray(filter)) return Object.entries(filter);
  const listed = filter.filter(isObject).flatMap((item) => Object.entries(item));
  const places = listed.map(([name]) => declared.findIndex((group) => group.key === name));
  const usual = places.every((place, index) => index === 0 || place > (places[index - 1] ?? 0));
  return usual ? listed : listed.map(([name, part], index) => [`${index}:${name}`, part]);
}

/** Returns the name that a group has in documents. */
export function nameOf(key: string): string {
  return key.replace(/^\d+:/, "");
}

/** Returns true if a group is an array of objects: its only parameter has the same name. */
export function isArray(group: Group): boolean {
  const [param] = group.params;
  return param?.kind === "PartsKind" && param.name === group.key;
}

/** Returns the objects of an array. */
export function itemsOf(request: Request, key: string): readonly Values[] {
  return arrayOf(valuesOf(request, key)[key]);
}

/** Returns the objects of a parameter that is an array of them. */
export function arrayOf(value: Value | undefined): readonly Values[] {
  return Array.isArray(value) ? (value as readonly Values[]) : [];
}

/** Returns an object without nulls, which mean no value. */
function withoutNulls(part: Document): Values {
  const plain = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(plain);
    return isObject(value) ? withoutNulls(value) : value;
  };
  const given = Object.entries(part).filter(([, value]) => value !== null);
  return Object.fromEntries(given.map(([name, value]) => [name, plain(value)])) as Values;
}

function isNumbered(key: string): boolean {
  return nameOf(key) !== key;
}

export function isObject(value: unknown): value is Document {
  return typeof value === "object" && value !== null && !Array.isArray(value);
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
  return withValues(request, group, changed(group, valuesOf(request, group.key), name, value, size));
}

/** Returns the values of a group with a parameter set, or unset by null, and what `withValue` changes with it. */
export function changed(group: Group, values: Values, name: string, value: Value | null, size: Size): Values {
  const param = group.params.find((item) => item.name === name);
  const usual = param && (value === param.default || (value === param.neutral && !param.required));
  const next = value === null || usual ? except(values, [name]) : { ...values, [name]: value };
  return settled(group, next, name, size);
}

/** Returns a request with another output format, without the parameters that this format does not have. */
export function withFormat(request: Request, groups: Group[], format: string): Request {
  const output = groups.find((group) => group.key === "output");
  return output ? withValue(request, output, "format", format, { width: 0, height: 0 }) : request;
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

function except<T>(record: { readonly [name: string]: T }, names: string[]): Record<string, T> {
  return Object.fromEntries(Object.entries(record).filter(([name]) => !names.includes(name)));
}

/** Returns the parameters of a group that its current values allow. */
export function allowed(group: Group, values: Values): Param[] {
  const excluded = group.rules.filter((rule) => excludes(rule, values) && !rule.values?.length);
  const names = new Set(excluded.flatMap((rule) => rule.names ?? []));
  return group.params.filter((param) => !names.has(param.name));
}

function settled(group: Group, given: Values, touched: string, size: Size): Values {
  let values: Record<string, Value> = { ...given };
  const has = (name: string) => values[name] !== undefined;
  const fill = (name: string) => {
    values = filled(group, values, name, size);
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
      drop(rule.values?.length ? names.filter((item) => rule.values?.includes(values[item] as Plain)) : names);
    }
    if (rule.rule === "Needs" && touched === name && has(name)) fill(other);
    if (rule.rule === "Needs" && !has(other)) drop([name]);
  }
  if (!has(touched) && group.params.find((param) => param.name === touched)?.required) return {};
  return completed(group, values, size);
}

/** Returns values with those that a group requires. */
export function completed(group: Group, given: Values, size: Size): Values {
  let values: Record<string, Value> = { ...given };
  const fill = (name: string) => {
    values = filled(group, values, name, size);
  };
  group.params.filter((param) => param.required).forEach((param) => fill(param.name));
  for (const rule of group.rules) {
    const names = rule.names ?? [];
    if (rule.rule === "RequiredWhen" && holds(rule, values)) names.forEach(fill);
    if (rule.rule === "AtLeastOne" && !names.some((name) => name in values)) names.slice(0, 1).forEach(fill);
  }
  return values;
}

function filled(group: Group, values: Record<string, Value>, name: string, size: Size): Record<string, Value> {
  const param = group.params.find((item) => item.name === name);
  return param && values[name] === undefined ? { ...values, [name]: initial(param, group, size) } : values;
}

/** Returns true if a rule forbids its parameters, or some of their values. */
function excludes(rule: Rule, values: Values): boolean {
  return (rule.rule === "NotWhen" && holds(rule, values)) || (rule.rule === "OnlyWhen" && !holds(rule, values));
}

function holds(rule: Rule, values: Values): boolean {
  const value = values[rule.choice ?? ""];
  return value === undefined ? rule.default === true : rule.options?.includes(value as Plain) === true;
}

/** Returns a first value that shows the effect of the parameter. */
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
    case "Content":
      return "Text";
    default:
      if (param.unit === "pixels") return Math.min(maximum, Math.max(minimum, pixels(param.name, size)));
      return neutral === null || neutral === minimum || neutral === maximum ? (minimum + maximum) / 2 : neutral;
  }
}

/** Returns a usual value of a parameter in pixels: width and height of the picture, a tenth of its shorter side. */
export function pixels(name: string, size: Size): number {
  if (name === "width" || name === "height") return size[name];
  return Math.round(Math.min(size.width, size.height) / 10);
}

/** Returns the path of a group in messages of the service. */
export function groupPath({ key, filter, place }: Group): string {
  if (place !== undefined) return `filter[${place}].${nameOf(key)}`;
  return filter ? `filter.${key}` : key;
}

/** Returns the part of a request that is applied before a group. */
export function before(request: Request, groups: Group[], key: string): Request {
  const index = groups.findIndex((group) => group.key === key);
  const earlier = new Set(groups.slice(0, index).map((group) => group.key));
  return Object.fromEntries(Object.entries(request).filter(([name]) => earlier.has(name)));
}

/** Returns the file suffix of a result. */
export function suffixOf(declarations: Declarations, format: string): string {
  return declarations.formats.find((item) => item.name === format)?.suffix ?? "";
}

/** Reads presets from the storage of the browser. Damaged ones are left out. */
export function storedPresets(text: string | null): Record<string, Document> {
  try {
    const found: unknown = JSON.parse(text ?? "{}");
    if (isObject(found)) return Object.fromEntries(Object.entries(found).filter(hasDocument));
  } catch {
    // not JSON: there are no presets
  }
  return {};
}

function hasDocument(entry: [string, unknown]): entry is [string, Document] {
  return isObject(entry[1]);
}
