import type { Static, TObject } from 'typebox';
import type { Scope } from '#schemas/apikey.ts';
import type { ToolCall } from './call.ts';

/** A tool as data: what a model reads of it, what it needs, and one function. */

/** What a client may tell the person before the tool runs. */
export interface Hints {
  /** Changes nothing. */
  readonly readOnlyHint: boolean;
  /** May end something that a person wanted, or publish something. */
  readonly destructiveHint: boolean;
  /** A repeat with the same arguments changes nothing more. */
  readonly idempotentHint: boolean;
  /** Reaches systems outside of this service. */
  readonly openWorldHint: boolean;
}

export const reads: Hints = { readOnlyHint: true, destructiveHint: false, idempotentHint: true, openWorldHint: false };
/** Changes what only this service holds. */
export const changes: Hints = { ...reads, readOnlyHint: false };
/** What it does may be seen by the public, or cannot be taken back. */
export const publishes: Hints = {
  readOnlyHint: false,
  destructiveHint: true,
  idempotentHint: true,
  openWorldHint: true,
};

export interface ToolAnswer<Data = unknown> {
  /** Some lines for a model: what happened, the ids that the next call needs, and what to do next. */
  readonly text: string;
  /** As the output schema says. */
  readonly data: Data;
}

export interface Tool<Input extends TObject = TObject, Output extends TObject = TObject> {
  readonly name: string;
  readonly title: string;
  /** For a model that has to choose a tool. */
  readonly description: string;
  /** All of them are needed: those of the operations that it calls. */
  readonly scopes: readonly [Scope, ...Scope[]];
  readonly hints: Hints;
  readonly input: Input;
  readonly output: Output;
  readonly run: (call: ToolCall, args: Static<Input>) => Promise<ToolAnswer<Static<Output>>>;
}

/** A tool in a list of tools: the server has validated its arguments before it runs. */
export type AnyTool = Omit<Tool, 'run'> & {
  readonly run: (call: ToolCall, args: never) => Promise<ToolAnswer>;
};

export const tool = <Input extends TObject, Output extends TObject>(made: Tool<Input, Output>): Tool<Input, Output> =>
  made;
