import { Type } from 'typebox';
import { LocalDateTime } from '#schemas/common.ts';
import { maxContent, scheduleTypes, scheduleTypeWords, selectionModes, selectionWords } from '#schemas/post.ts';
import { ClosedEnum, forType, Named, onlyWith, said } from '#schemas/published.ts';
import { type Cleaned, Defaulted, InstantInput, Maybe, PlatformInput, UuidInput } from './common.ts';

/** The parts of a post as a caller composes it: variants, accounts, times, and the segments of a thread. */

export const Text = (maxLength: number, description: string) => Type.String({ maxLength, description });
export const MediaIds = (description: string) => Type.Array(UuidInput, { maxItems: 20, description });

/** The contract shows the members that the networks read. */
const NetworkOverrides = Named('NetworkOverrides', Type.Record(Type.String(), Type.Unknown()));

export const VariantInput = Named(
  'VariantInput',
  Type.Object(
    {
      platform: said(PlatformInput, 'The network.'),
      contentOverride: Maybe(
        Text(
          maxContent,
          'Replaces the content on this network; an empty string is a real empty caption. Absent: the content.',
        ),
      ),
      mediaIdsOverride: Maybe(MediaIds('Replaces the media on this network, in order. Absent: the media of the post.')),
      overrides: Defaulted(
        said(NetworkOverrides, 'Settings of the network; unknown keys are ignored, with a warning.'),
        {},
      ),
    },
    { description: 'What differs from the post on one network.' },
  ),
);

export const TargetSelectionInput = Named(
  'TargetSelectionInput',
  Type.Object(
    {
      mode: said(ClosedEnum('SelectionModeInput', selectionModes, selectionWords), 'How the accounts are selected.'),
      clientId: onlyWith(
        'mode',
        ['group'],
        Maybe(said(UuidInput, 'Required for mode group, where it equals the `clientId` of the post.')),
      ),
      accountIds: onlyWith(
        'mode',
        ['selection', 'accounts'],
        Maybe(
          Type.Array(UuidInput, {
            minItems: 1,
            maxItems: 500,
            description: 'Required for the modes selection and accounts. One that is listed twice counts once.',
          }),
        ),
      ),
      platforms: Maybe(
        Type.Array(PlatformInput, {
          minItems: 1,
          maxItems: 11,
          description: 'Narrows a group to these networks; the other modes ignore it, with a warning.',
        }),
      ),
    },
    { description: 'The accounts that a post goes to.' },
  ),
);

export const ScheduleInput = Named(
  'ScheduleInput',
  Type.Object(
    {
      type: said(
        ClosedEnum('ScheduleTypeInput', scheduleTypes, scheduleTypeWords),
        'Which of the members below count.',
      ),
      scheduledAt: forType(
        'at',
        Maybe(InstantInput('For type at, where no `scheduledLocal` is sent: the due instant.')),
      ),
      scheduledLocal: forType(
        'at',
        Maybe(
          said(
            LocalDateTime,
            'For type at: the due wall-clock time `YYYY-MM-DDTHH:mm`, read in each target’s own zone; it wins over `scheduledAt`.',
            { examples: ['2026-02-02T09:00'] },
          ),
        ),
      ),
      from: forType('range', Maybe(InstantInput('Required for type range: when the first target is due.'))),
      to: forType('range', Maybe(InstantInput('Required for type range: when the last target is due, after `from`.'))),
      spreadMinutes: Maybe(
        Type.Integer({
          minimum: 0,
          maximum: 720,
          description:
            'Delays each target by a time of its own within so many minutes, the same at each repeat and never earlier than its time.',
        }),
      ),
    },
    { description: 'When a post goes out. Members that belong to another type are ignored, with a warning.' },
  ),
);
export type ScheduleInput = Cleaned<typeof ScheduleInput>;

const SegmentInput = Named(
  'ThreadSegmentInput',
  Type.Object(
    {
      content: Defaulted(Text(maxContent, 'The text of this segment; a segment needs text or media.'), ''),
      mediaIds: Defaulted(MediaIds('The media of this segment, in order.'), []),
    },
    { description: 'One post of a thread.' },
  ),
);

export const ThreadInput = Named(
  'PostThreadInput',
  Type.Object(
    {
      segments: Type.Array(SegmentInput, {
        minItems: 2,
        maxItems: 50,
        description: 'The first is the head; each later one replies to the one before it.',
      }),
    },
    {
      description:
        'A chain of replies on x and threads, where its segments stand for `content`, `mediaIds` and their variants. Each goes out once the one before it is out; the target is known by the first.',
    },
  ),
);
