import type { ErrorCode } from '#domain/codes.ts';
import type { Issue } from '#schemas/issues.ts';
import { maxIssues } from '#schemas/validator.ts';
import { toProblem } from './middleware/problems.ts';

/** Why one item of a call was refused: stored with the result of the call, so that a repeat answers the same. */
export interface ItemProblem {
  readonly code: ErrorCode;
  readonly detail: string | null;
  readonly errors: readonly Issue[];
  readonly extra: Readonly<Record<string, unknown>>;
}

/** Bytes of one stored problem: a hundred of them fit into an event. Later entries of `errors` are left out. */
const maxBytes = 8 * 1024;

/** @throws the error itself where it is no refusal of the item: the whole call failed, and may be repeated */
export const itemProblem = (error: unknown): ItemProblem => {
  const { code, detail, errors, extra } = toProblem(error);
  if (code === 'internal' || code === 'unavailable') throw error;
  const kept = errors.slice(0, maxIssues);
  while (kept.length > 1 && Buffer.byteLength(JSON.stringify(kept)) > maxBytes) kept.pop();
  return { code, detail, errors: kept, extra };
};
