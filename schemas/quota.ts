import { Type } from 'typebox';
import { type EventOf, Nullable, Uuid } from './common.ts';

/** Places of one month of a workspace: each target that is due in it takes one, while the workspace has a quota. */

/** Places that an operator may grant for a month. */
export const maxPostingQuota = 1_000_000;
export const PostingQuota = Type.Integer({ minimum: 0, maximum: maxPostingQuota });

/** Targets of one reservation: those of a post. */
export const maxReserved = 500;
const targetIds = Type.Array(Uuid, { minItems: 1, maxItems: maxReserved });

/** The stream's id is uuidv5(workspace, month). */
export const quotaEvents = {
  /** A place for each of these targets, taken before the append that makes them due in the month. */
  QuotaReserved: Type.Object({
    /** In the zone of the workspace. */
    month: Type.String({ pattern: '^\\d{4}-\\d\\d$' }),
    postId: Uuid,
    targetIds,
    /** Places taken by this event: those of the targets that had none in this month. */
    n: Type.Integer({ minimum: 0, maximum: maxReserved }),
    /**
     * The append that the places are for: the next one behind this revision of the post, or of the single target. Null:
     * the targets are due in the month already.
     */
    awaits: Nullable(Type.Object({ stream: Type.Enum(['post', 'target']), revision: Type.Integer({ minimum: -1 }) })),
  }),
  /** These targets are no longer due in the month, or failed, were canceled, or never came. */
  QuotaReleased: Type.Object({ postId: Uuid, targetIds }),
} as const;
export type QuotaEvent = EventOf<typeof quotaEvents>;
