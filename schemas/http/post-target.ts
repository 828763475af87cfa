import { Type } from 'typebox';
import { Instant, LocalDateTime, Nullable, Platform, Uuid } from '#schemas/common.ts';
import { Failure, targetStatuses } from '#schemas/target.ts';
import { type Cleaned, InstantInput, Maybe, PlatformInput, paging, stamps } from './common.ts';

/** One destination of a post as answered, and the calls that change it. */

export const PostTarget = Type.Object({
  id: Uuid,
  object: Type.Literal('post_target'),
  ...stamps,
  postId: Uuid,
  clientId: Uuid,
  accountId: Uuid,
  platform: Platform,
  status: Type.Enum([...targetStatuses]),
  scheduledAt: Type.String({ format: 'date-time', description: 'The instant at which it is due, jitter included.' }),
  scheduledLocal: Nullable(LocalDateTime),
  timezone: Type.String(),
  jitterSeconds: Type.Integer({ minimum: 0 }),
  scheduleMode: Type.Enum(['managed', 'native'], { description: 'The mode in use.' }),
  scheduleModeReason: Nullable(Type.String({ description: 'Why the requested mode is not in use.' })),
  attempts: Type.Integer({ minimum: 0 }),
  publishedAt: Nullable(Instant),
  externalId: Nullable(Type.String()),
  permalink: Nullable(Type.String()),
  failure: Nullable(Failure),
  retryAt: Nullable(Instant),
  firstComment: Nullable(Type.String()),
  firstCommentIssue: Nullable(
    Type.Object({ code: Type.String(), message: Type.String(), platformCode: Nullable(Type.String()), at: Instant }),
  ),
  content: Type.String({
    description: 'The text that is published; for a thread, that of its first segment, as are `mediaIds`.',
  }),
  mediaIds: Type.Array(Uuid),
  overrides: Type.Record(Type.String(), Type.Unknown()),
});

/** Exactly one of the two. */
export const TargetReschedule = Type.Object({
  scheduledAt: Maybe(InstantInput('New instant; clears jitter.')),
  shiftMinutes: Maybe(
    Type.Integer({
      minimum: -525_600,
      maximum: 525_600,
      description: 'Moves the target by so many minutes; the jitter stays.',
    }),
  ),
});
export type TargetReschedule = Cleaned<typeof TargetReschedule>;

export const PostTargetQuery = Type.Object({
  ...paging,
  postId: Maybe(Uuid),
  clientId: Maybe(Uuid),
  accountId: Maybe(Uuid),
  platform: Maybe(Type.Array(PlatformInput, { minItems: 1 })),
  status: Maybe(Type.Array(Type.Enum([...targetStatuses]), { minItems: 1 })),
  from: Maybe(InstantInput('Due at or after.')),
  to: Maybe(InstantInput('Due before.')),
});
