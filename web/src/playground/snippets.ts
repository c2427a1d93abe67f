/** The request in other languages. Values are quoted for the shell or for Python. */

import { type Document, isArray, itemsOf, suffixOf } from "./request";
import { address } from "../shared/service";
import type { Declarations, Group, Plain, Request, Source, Values } from "./types";

const MARK = "logo.png";

interface Asked {
  declarations: Declarations;
  source: Source | null;
  request: Request;
  document: Document;
  format: string;
  /** The file names of watermarks, by id. */
  marks: ReadonlyMap<string, string>;
}

export function json({ document, source }: Asked): string {
  const place = source?.url === undefined ? {} : { url: source.url };
  return JSON.stringify({ ...place, ...document }, null, 2);
}

export function curl(asked: Asked): string {
  const { source, document } = asked;
  const head = ["curl --fail", `-H "Authorization: Bearer $KEY"`];
  const answer = { response: { mode: "binary" } };
  const lines =
    source?.url === undefined
      ? [
          `-F ${shell(`file=@${formPath(input(asked))}`)}`,
          `-F ${shell(`data=${JSON.stringify({ ...document, ...answer })}`)}`,
          `-o ${shell(output(asked))}`,
          shell(address("1.0/upload")),
        ]
      : [
          `-H "Content-Type: application/json"`,
          `-d ${shell(JSON.stringify({ url: source.url, ...document, ...answer }))}`,
          `-o ${shell(output(asked))}`,
          shell(address("1.0/fetch")),
        ];
  return [...head, ...lines].join(" \\\n  ");
}

export function python(asked: Asked): string {
  const named = idsOf(asked.request).map((id) => `${quoted(id)}: ${quoted(fileOf(id, asked))}`);
  const marks = named.length ? `, watermarks={${named.join(", ")}}` : "";
  return [
    "import imgsvc_core as imgsvc",
    "",
    `request = ${literal(asked.document, "")}`,
    `result = imgsvc.process(${quoted(input(asked))}, request, ${quoted(output(asked))}${marks})`,
    "print(result.output.width, result.output.height, result.output.bytes)",
  ].join("\n");
}

export function command(asked: Asked): string {
  const { groups } = asked.declarations;
  const start = `imgsvc process ${shell(input(asked))} -o ${shell(output(asked))}`;
  if (groups.some((group) => group.place !== undefined || (isArray(group) && asked.request[group.key]))) {
    return `echo ${shell(JSON.stringify(withFiles(asked)))} | ${start} --spec -`; // flags have no order
  }
  const flags = groups.flatMap((group) => flagsOf(group, asked));
  return [start, ...flags].join(" \\\n  ");
}

/** Returns the ids of the uploaded pictures that a request names. */
export function idsOf(request: Request): string[] {
  const pictures = itemsOf(request, "layers").map(({ picture }) => picture as Values | undefined);
  const ids = [request.watermark, ...pictures].map((values) => values?.id);
  return [...new Set(ids.filter((id) => typeof id === "string" && id !== ""))] as string[];
}

/** Returns the document with files in place of the ids of pictures, as the command expects it. */
function withFiles(asked: Asked): Document {
  const { document, request } = asked;
  const { watermark } = request;
  const layers = itemsOf(request, "layers").map((layer) => {
    const id = (layer.picture as Values | undefined)?.id;
    return typeof id === "string" ? { ...layer, picture: { source: fileOf(id, asked) } } : layer;
  });
  const marked = watermark ? { ...document, watermark: { ...watermark, id: fileOf(watermark.id as string, asked) } } : document;
  return layers.length ? { ...marked, layers } : marked;
}

function fileOf(id: string, { marks }: Asked): string {
  return path(marks.get(id) ?? MARK);
}

function flagsOf(group: Group, asked: Asked): string[] {
  const values = asked.request[group.key] ?? {};
  return group.params.flatMap((param) => {
    const value = values[param.name];
    if (value === undefined || typeof value === "object") return [];
    if (typeof value === "boolean") return [`--${value ? "" : "no-"}${param.option}`];
    const file = group.key === "watermark" && param.name === "id";
    return [`--${param.option} ${shell(file ? fileOf(String(value), asked) : String(value))}`];
  });
}

function input({ source }: Asked): string {
  return source?.url ?? path(source?.name ?? "picture.jpg");
}

function output(asked: Asked): string {
  const stem = (asked.source?.name ?? "picture").replace(/\.[^.]*$/, "");
  return path(`${stem}-result${suffixOf(asked.declarations, asked.format)}`);
}

/** Returns a path that no program mistakes for an option. */
function path(name: string): string {
  return name.startsWith("-") ? `./${name}` : name;
}

/** Quotes a path for a form of curl, where commas and semicolons would end it. */
function formPath(file: string): string {
  return `"${file.replace(/["\\]/g, "\\$&")}"`;
}

function shell(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}

function quoted(text: string): string {
  return JSON.stringify(text); // a JSON string is valid in Python, too
}

function literal(value: unknown, indent: string): string {
  if (typeof value !== "object" || value === null) return plain(value as Plain);
  if (Array.isArray(value)) return `[${value.map((item) => literal(item, indent)).join(", ")}]`;
  const inner = `${indent}    `;
  const lines = Object.entries(value).map(([name, item]) => `${inner}${quoted(name)}: ${literal(item, inner)},\n`);
  return lines.length ? `{\n${lines.join("")}${indent}}` : "{}";
}

function plain(value: Plain): string {
  if (typeof value === "boolean") return value ? "True" : "False";
  return typeof value === "string" ? quoted(value) : String(value);
}
