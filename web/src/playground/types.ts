/** Requests and pictures of the playground. Types of answers come from the OpenAPI document. */

import type { Answer } from "../shared/service";

type Known = Answer<"/playground/declarations.json">;
type Declared = Known["groups"][number];
export type Param = Declared["params"][number];
export type Rule = Declared["rules"][number];
export type Plain = NonNullable<Param["default"]>;
/** A value of a parameter: plain, an object of parameters, or an array of such objects. */
export type Value = Plain | Values | readonly Values[];

/** An operation or a filter with its parameters. */
export interface Group extends Declared {
  /** Where a filter stands in an array of filters. */
  place?: number;
}

export interface Declarations extends Known {
  groups: Group[];
  /** What arrays and objects hold. */
  parts: Group[];
}

/** Values that were given, by parameter. */
export interface Values {
  readonly [name: string]: Value;
}

/** Values that were given, by operation or filter and by parameter. */
export type Request = Readonly<Record<string, Values>>;

export type Facts = Answer<"/playground/previews/{source}", "post">;
export type Scores = Answer<"/playground/scores/{source}", "post">;
export type ImageFacts = Facts["input"];
export type SourceFacts = Pick<ImageFacts, "width" | "height" | "orientation" | "frames">;
export type LayerBox = NonNullable<Facts["layers"]>[number];
export type PlanStep = NonNullable<Facts["plan"]>[number];

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
}

/** What is shown in place of the result of the request: that of another document, beside the original or a second one. */
export interface Look {
  left: Record<string, unknown> | null;
  right: Record<string, unknown>;
}

/** The facts of a result, and the picture that the browser shows of it. */
export interface Result {
  facts: Facts;
  /** A still result is reduced to the window. */
  shown: Blob;
  window: Size;
  milliseconds: number;
}
