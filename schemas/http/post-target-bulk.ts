import { Type } from 'typebox';
import { Uuid } from '#schemas/common.ts';
import { ClosedEnum, Named, onlyWith, said } from '#schemas/published.ts';
import { type Cleaned, Problem, UuidInput } from './common.ts';
import { PostTarget, PostTargetReschedule } from './post-target.ts';

/** POST /post-targets/bulk: one action on many targets. */

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
      targetIds: Type.Array(UuidInput, {
        minItems: 1,
        maxItems: 100,
        description: 'The targets. One that is listed twice counts once.',
      }),
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
    { description: 'One action on many targets; reschedule takes exactly one of its two members.' },
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
        description: 'One for each target, in the order in which they were first listed.',
      }),
    },
    { description: 'What became of the targets of a bulk call.' },
  ),
);
