/** What the service says of requests, and what requests and results are. */

export type Value = string | number | boolean;

export interface Param {
  name: string;
  option: string;
  doc: string;
  unit: string | null;
  required: boolean;
  default: Value | null;
  neutral: Value | null;
  kind: "Integer" | "Number" | "Boolean" | "Choice" | "Text" | "HexColor" | "AspectRatio";
  minimum?: number;
  maximum?: number;
  options?: string[];
  alpha?: boolean;
}

export interface Rule {
  rule: string;
  choice?: string;
  options?: Value[];
  names?: string[];
  values?: Value[];
  default?: boolean;
  name?: string;
  other?: string;
  first?: string[];
  second?: string[];
}

/** An operation or a filter with its parameters. */
export interface Group {
  key: string;
  /** Where a filter stands in an array of filters. */
  place?: number;
  title: string;
  doc: string;
  filter: boolean;
  rules: Rule[];
  params: Param[];
}

export interface Format {
  name: string;
  media_type: string;
  suffix: string;
}

export interface Declarations {
  version: string;
  metadata_header: string;
  groups: Group[];
  formats: Format[];
  examples: string[];
}

/** Values that were given, by parameter. */
export type Values = Readonly<Record<string, Value>>;

/** Values that were given, by operation or filter and by parameter. */
export type Request = Readonly<Record<string, Values>>;

export interface ImageFacts {
  name: string;
  format: string;
  width: number;
  height: number;
  bytes: number;
  frames: number;
  orientation: number;
  alpha: boolean;
  colorspace: string;
  quality?: number;
}

export type SourceFacts = Pick<ImageFacts, "width" | "height" | "orientation" | "frames">;

export interface PlanStep {
  phase: string;
  text: string;
  why: string;
  width: number;
  height: number;
}

export interface Facts {
  input: ImageFacts;
  output: ImageFacts & { faces?: unknown[] };
  timing: Readonly<Record<string, number>>;
  plan?: PlanStep[];
}

export interface Problem {
  path: string;
  message: string;
}

export interface Size {
  width: number;
  height: number;
}

/** A picture to work on. Only what comes from an example or a URL can be shared. */
export interface Source {
  kind: "file" | "example" | "url";
  name: string;
  blob: Blob;
  url?: string;
  /** Facts of a fetched picture. What is here of it is a copy in another format. */
  fetched?: ImageFacts;
}

/** A picture that the service made, with a form of it that the browser can show. */
export interface Result {
  blob: Blob;
  shown: Blob;
  facts: Facts;
  milliseconds: number;
}
