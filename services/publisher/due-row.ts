import type { Taker } from './shares.ts';

/** A target with work to do, as the read model shows it. Its stream decides; the row only says where to look. */
export interface DueRow extends Taker {
  readonly id: string;
  readonly revision: number;
}
