import { Type } from 'typebox';
import { Instant, Nullable, Uuid } from '#schemas/common.ts';
import { recycleStops } from '#schemas/post.ts';
import { Named, OpenEnum, said } from '#schemas/published.ts';
import { type Cleaned, Defaulted, InstantInput, Maybe } from './common.ts';

/** How a post is repeated, as callers set it and see it. */

const words = {
  enabled: 'Whether copies are made. False keeps the settings and makes none.',
  everyDays:
    'A copy is due every so many days after the post was published, each target at its wall-clock time in its own zone, and on each account at least so many days less 12 hours after the publication before it, also where that was late.',
  times: 'Copies at most, counted with those that were made under earlier settings; null: no limit.',
  until: 'No copy is due after it; null: no end.',
} as const;
const days = { minimum: 1, maximum: 365 };
const copies = { minimum: 1, maximum: 100 };

/** The settings, as members of a body. */
export const recycleSettings = {
  enabled: Defaulted(Type.Boolean({ description: words.enabled }), true),
  everyDays: Type.Integer({ ...days, description: words.everyDays, examples: [30] }),
  times: Maybe(Type.Integer({ ...copies, description: words.times, examples: [3] })),
  until: Maybe(InstantInput(words.until)),
};

export const PostRecycle = Named(
  'PostRecycle',
  Type.Object(recycleSettings, { description: 'How a post is repeated. It replaces the settings as a whole.' }),
);
export type PostRecycle = Cleaned<typeof PostRecycle>;

const StoppedReason = OpenEnum(
  'RecycleStoppedReason',
  [...recycleStops, 'post_canceled'],
  'times: as many copies as asked for were made; until: the next one would be due after it; client_archived: the client is archived; account_disconnected: no account of the post is connected; failures: three copies in a row were refused or failed; post_canceled: the post was canceled.',
);

export const Recycle = Named(
  'Recycle',
  Type.Object(
    {
      object: Type.Literal('recycle', { description: 'The kind of resource.' }),
      postId: said(Uuid, 'The post that is repeated.'),
      enabled: Type.Boolean({ description: 'Whether copies are made.' }),
      everyDays: said(Nullable(Type.Integer(days)), `${words.everyDays} Null: nothing is set.`),
      times: said(Nullable(Type.Integer(copies)), words.times),
      until: said(Nullable(Instant), words.until),
      nextAt: said(
        Nullable(Instant),
        'When the first target of the next copy is due, before jitter; null: the post is not published yet, or no copy will be made.',
      ),
      posted: Type.Integer({ minimum: 0, description: 'Number of copies that were made.' }),
      stoppedReason: said(Nullable(StoppedReason), 'Why the service makes no more copies; null: it has not stopped.'),
      revision: Type.Integer({ minimum: 0, description: 'Revision of the post: the value of ETag and If-Match.' }),
    },
    { description: 'How a post is repeated: copies of it go out as new posts, which name it in `recycledFrom`.' },
  ),
);
