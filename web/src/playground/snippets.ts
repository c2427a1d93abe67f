/** The request in other languages. Values are quoted for the shell or for Python. */

import { type Document, suffixOf } from "./request";
import { address } from "../shared/service";
import type { Declarations, Group, Request, Source, Value } from "./types";

interface Asked {
  declarations: Declarations;
  source: Source | null;
  request: Request;
  document: Document;
  format: string;
  /** The file name of the watermark. */
  mark: string;
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
  const id = asked.request.watermark?.id;
  const marks = id === undefined ? "" : `, watermarks={${quoted(String(id))}: ${quoted(path(asked.mark))}}`;
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
  if (groups.some((group) => group.place !== undefined)) {
    return `echo ${shell(JSON.stringify(withMark(asked)))} | ${start} --spec -`; // flags have no order
  }
  const flags = groups.flatMap((group) => flagsOf(group, asked));
  return [start, ...flags].join(" \\\n  ");
}

/** Returns the document with a file in place of the watermark's id, as the command expects it. */
function withMark({ document, request: { watermark }, mark }: Asked): Document {
  return watermark ? { ...document, watermark: { ...watermark, id: path(mark) } } : document;
}

function flagsOf(group: Group, { request, mark }: Asked): string[] {
  const values = request[group.key] ?? {};
  return group.params.flatMap((param) => {
    const value = values[param.name];
    if (value === undefined) return [];
    if (typeof value === "boolean") return [`--${value ? "" : "no-"}${param.option}`];
    const file = group.key === "watermark" && param.name === "id";
    return [`--${param.option} ${shell(file ? path(mark) : String(value))}`];
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
  if (typeof value !== "object" || value === null) return plain(value as Value);
  if (Array.isArray(value)) return `[${value.map((item) => literal(item, indent)).join(", ")}]`;
  const inner = `${indent}    `;
  const lines = Object.entries(value).map(([name, item]) => `${inner}${quoted(name)}: ${literal(item, inner)},\n`);
  return lines.length ? `{\n${lines.join("")}${indent}}` : "{}";
}

function plain(value: Value): string {
  if (typeof value === "boolean") return value ? "True" : "False";
  return typeof value === "string" ? quoted(value) : String(value);
}
