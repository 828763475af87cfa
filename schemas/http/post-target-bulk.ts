import { Type } from 'typebox';
import { Uuid } from '#schemas/common.ts';
import { ClosedEnum, Named, onlyWith, said } from '#schemas/published.ts';
import { type Cleaned, InstantInput, Maybe, PlatformInput, Problem, UuidInput } from './common.ts';
import { PostTarget, PostTargetReschedule } from './post-target.ts';

/** POST /post-targets/bulk: one action on many targets. */

export const maxSelectedTargets = 500;

const PostTargetSelect = Named(
  'PostTargetSelect',
  Type.Object(
    {
      postId: Maybe(said(UuidInput, 'Only targets of this post.')),
      clientId: Maybe(said(UuidInput, 'Only targets of this client’s accounts.')),
      accountId: Maybe(said(UuidInput, 'Only targets of this account.')),
      platforms: Maybe(Type.Array(PlatformInput, { minItems: 1, maxItems: 11, description: 'Only these networks.' })),
      from: Maybe(InstantInput('Due at or after.')),
      to: Maybe(InstantInput('Due before.')),
    },
    {
      description: `Targets for which the action is possible: of one post, or due from \`from\` to \`to\`. At most ${maxSelectedTargets}; of more, the call is refused.`,
    },
  ),
);

export const PostTargetBulk = Named(
  'PostTargetBulk',
  Type.Object(
    {
      action: said(
        ClosedEnum(
          'PostTargetAction',
          ['reschedule', 'retry', 'cancel'],
          'reschedule: move each to another time; retry: queue each again; cancel: publish none of them.',
        ),
        'What to do with each target, by the rules of the operation of the same name.',
      ),
      targetIds: Maybe(
        Type.Array(UuidInput, {
          minItems: 1,
          maxItems: 100,
          description: 'The targets. One that is listed twice counts once. Absent: those of `select`.',
        }),
      ),
      select: Maybe(said(PostTargetSelect, 'The targets, instead of `targetIds`.')),
      scheduledAt: onlyWith(
        'action',
        ['reschedule'],
        said(
          PostTargetReschedule.properties.scheduledAt,
          'For reschedule: the new instant of all; they lose their jitter.',
        ),
      ),
      shiftMinutes: onlyWith(
        'action',
        ['reschedule'],
        said(
          PostTargetReschedule.properties.shiftMinutes,
          'For reschedule: moves each by so many minutes, backward where negative; each keeps its jitter.',
        ),
      ),
    },
    {
      description:
        'One action on many targets: exactly one of `targetIds` and `select`. Reschedule takes exactly one of its two members.',
    },
  ),
);
export type PostTargetBulk = Cleaned<typeof PostTargetBulk>;

const PostTargetBulkOutcome = Named(
  'PostTargetBulkOutcome',
  Type.Object(
    {
      targetId: said(Uuid, 'The target, as it was sent.'),
      ok: Type.Boolean({ description: 'Whether the action was done.' }),
      target: Type.Optional(said(PostTarget, 'The target after the action; absent where it was refused.')),
      error: Type.Optional(
        said(Problem, 'What the operation on this target alone would have answered; absent where it was done.'),
      ),
    },
    { description: 'What became of one target.' },
  ),
);

export const PostTargetBulkResult = Named(
  'PostTargetBulkResult',
  Type.Object(
    {
      object: Type.Literal('post_target_bulk_result', { description: 'The kind of resource.' }),
      results: Type.Array(PostTargetBulkOutcome, {
        description: 'One for each target, in the order in which they were first listed, or are due.',
      }),
    },
    { description: 'What became of the targets of a bulk call.' },
  ),
);
