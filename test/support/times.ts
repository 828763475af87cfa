import type { Times } from '#runtime/process/settings/times.ts';

/** The variable by which a test shortens the times of the processes that it starts. It holds all of them: merge, do not set twice. */
export const timesEnv = (times: Partial<Times>): { readonly POSTLINE_TIMES: string } => ({
  POSTLINE_TIMES: JSON.stringify(times),
});
