import { Type } from 'typebox';
import { CadenceRule } from '#schemas/cadence.ts';
import { maxShiftDays, maxShiftMinutes } from '#schemas/campaign.ts';
import { Instant, Nullable, Platform, Uuid } from '#schemas/common.ts';
import { LocalDate } from '#schemas/insights.ts';
import { Named, OpenEnum, said } from '#schemas/published.ts';
import { PostingQuota } from '#schemas/quota.ts';
import { ShiftSkip } from './campaign-shift.ts';
import { type Cleaned, InstantInput, Maybe, PlatformInput, UuidInput } from './common.ts';
import { recycleSettings } from './post-recycle.ts';

/** POST /simulations: what would become of a planned period under other rules. */

export const maxSimulatedRecycles = 20;
export const maxSimulatedChanges = 500;
export const maxSimulatedSame = 100;

const { minIntervalMinutes, perDay } = CadenceRule.properties;

const SimulatedRule = Named(
  'SimulatedCadenceRule',
  Type.Object(
    {
      platform: Maybe(
        said(PlatformInput, 'The network whose accounts it is for; absent: all without a rule of their own.'),
      ),
      minIntervalMinutes: Maybe(said(minIntervalMinutes.anyOf[0], 'Minutes between two targets of one account.')),
      perDay: Maybe(said(perDay.anyOf[0], 'Targets of one account within any 24 hours.')),
    },
    {
      description:
        'How often an account may publish. It replaces the rule of the same networks; without either number it ends that rule.',
    },
  ),
);

const SimulatedQuota = Named(
  'SimulatedQuota',
  Type.Object(
    {
      limit: Maybe(
        said(PostingQuota, 'Targets of the workspace that may be due in one month; absent: as many as it likes.'),
      ),
    },
    { description: 'Another quota of the workspace.' },
  ),
);

const SimulatedRecycle = Named(
  'SimulatedRecycle',
  Type.Object(
    { postId: said(UuidInput, 'The post, of this client.'), ...recycleSettings },
    { description: 'Other recycling of a post, as PUT /posts/{id}/recycle takes it.' },
  ),
);

const SimulatedShift = Named(
  'SimulatedShift',
  Type.Object(
    {
      campaignId: said(UuidInput, 'The campaign.'),
      minutes: Maybe(
        Type.Integer({
          minimum: -maxShiftMinutes,
          maximum: maxShiftMinutes,
          description: 'Minutes; negative: earlier.',
        }),
      ),
      days: Maybe(
        Type.Integer({
          minimum: -maxShiftDays,
          maximum: maxShiftDays,
          description: 'Days; negative: earlier. Wall-clock times stay.',
        }),
      ),
    },
    {
      description:
        'A campaign that moves: exactly one of `minutes` and `days`. Only its targets of this client are moved here.',
    },
  ),
);

export const SimulationCreate = Named(
  'SimulationCreate',
  Type.Object(
    {
      clientId: said(UuidInput, 'The client whose accounts are looked at.'),
      from: Maybe(InstantInput('First instant of the period, not in the past; absent: now.')),
      to: Maybe(
        InstantInput(
          'End of the period, which is no part of it, at most 92 days after `from`; absent: 31 days after `from`.',
        ),
      ),
      cadence: Maybe(
        Type.Array(SimulatedRule, {
          minItems: 1,
          maxItems: 11,
          description: 'Other rules of how often accounts may publish.',
        }),
      ),
      quota: Maybe(
        said(SimulatedQuota, 'Another quota of the workspace; a credential limited to clients cannot try one.'),
      ),
      recycling: Maybe(
        Type.Array(SimulatedRecycle, {
          minItems: 1,
          maxItems: maxSimulatedRecycles,
          description: 'Other recycling of posts, each of them once.',
        }),
      ),
      shift: Maybe(said(SimulatedShift, 'A campaign that moves.')),
    },
    { description: 'A planned period, and at least one change to its rules. Several changes are made together.' },
  ),
);
export type SimulationCreate = Cleaned<typeof SimulationCreate>;

const State = OpenEnum(
  'SimulatedState',
  ['goes_out', 'held', 'fails', 'refused', 'canceled'],
  'goes_out: it is published then; held: it waits for an approval; fails: it is never published, as its failure would say; refused: a copy of a recycled post that would not be made; canceled: a copy that still waits when the next one is made.',
);

const Outcome = Named(
  'SimulatedOutcome',
  Type.Object(
    {
      state: said(State, 'What becomes of it.'),
      at: said(Instant, 'When it goes out, or would have been due.'),
      code: said(
        Nullable(Type.String()),
        'Why it goes out later than it is due, or not at all: the code that its failure or refusal would have; null: nothing keeps it. GET /errors/{code} explains it.',
        { examples: ['cadence_reached'] },
      ),
      message: said(Nullable(Type.String()), 'The same in words for a person.'),
    },
    { description: 'What becomes of a target under some rules.' },
  ),
);

const CopyOf = Named(
  'SimulatedCopyOf',
  Type.Object(
    {
      postId: said(Uuid, 'The recycled post.'),
      occurrence: Type.Integer({ minimum: 1, description: 'Number of the copy.' }),
    },
    { description: 'Which copy of a recycled post it belongs to.' },
  ),
);

const Change = Named(
  'SimulatedChange',
  Type.Object(
    {
      targetId: said(Uuid, 'The target; of a copy that is not made yet, the id that it will have.'),
      postId: said(Uuid, 'Its post.'),
      accountId: said(Uuid, 'Its account.'),
      platform: said(Platform, 'Its network.'),
      copyOf: said(Nullable(CopyOf), 'Of a copy that is not made yet; else null.'),
      now: said(Nullable(Outcome), 'What becomes of it as things are; null: there is no such target.'),
      then: said(Nullable(Outcome), 'What would become of it; null: there would be no such target.'),
    },
    { description: 'A target of which something else would become.' },
  ),
);

const count = (description: string) => Type.Integer({ minimum: 0, description });

const Count = Named(
  'SimulatedCount',
  Type.Object(
    {
      accountId: said(Uuid, 'The account.'),
      day: said(LocalDate, 'The day in the zone of the workspace.'),
      state: said(State, 'What becomes of the targets.'),
      now: count('Targets as things are.'),
      then: count('Targets as they would be.'),
    },
    { description: 'Targets of one account on one day.' },
  ),
);

const Month = Named(
  'SimulatedMonth',
  Type.Object(
    {
      month: Type.String({ description: 'The month in the zone of the workspace.', examples: ['2026-02'] }),
      limitNow: said(Nullable(Type.Integer({ minimum: 0 })), 'The quota as it is; null: none.'),
      limitThen: said(Nullable(Type.Integer({ minimum: 0 })), 'The quota as it would be; null: none.'),
      now: count('Targets of the workspace that count in it as things are.'),
      then: count('Targets of the workspace that would count in it.'),
      over: count('Those beyond `limitThen`: they keep their places, and the month has no room for another one.'),
    },
    { description: 'The places of a month.' },
  ),
);

const ShownRefusal = Nullable(
  Named(
    'SimulatedRefusal',
    Type.Object(
      {
        code: Type.String({ description: 'The code of the refusal.', examples: ['quota_exceeded'] }),
        message: Type.String({ description: 'The refusal in words for a person.' }),
      },
      { description: 'Why POST /posts would refuse a post.' },
    ),
  ),
);

const Anew = Named(
  'SimulatedComposition',
  Type.Object(
    {
      postId: said(Uuid, 'The post.'),
      now: said(ShownRefusal, 'Under the rules as they are; null: it would be accepted.'),
      then: said(ShownRefusal, 'Under the other rules; null: it would be accepted.'),
    },
    { description: 'A post of the plan, as it would be answered if the plan were composed anew.' },
  ),
);

const Same = Named(
  'SimulatedSame',
  Type.Object(
    {
      count: count('Their number.'),
      targetIds: Type.Array(Uuid, {
        maxItems: maxSimulatedSame,
        description: `The first ${maxSimulatedSame} of them.`,
      }),
    },
    { description: 'Targets of which the same becomes.' },
  ),
);

export const Simulation = Named(
  'Simulation',
  Type.Object(
    {
      object: Type.Literal('simulation', { description: 'The kind of resource.' }),
      clientId: said(Uuid, 'The client.'),
      from: said(Instant, 'First instant of the period.'),
      to: said(Instant, 'End of the period.'),
      targets: count('Targets that are due in the period, as things are or as they would be.'),
      changed: count('Those of which something else would become.'),
      changes: Type.Array(Change, {
        maxItems: maxSimulatedChanges,
        description: `The first ${maxSimulatedChanges} of those, in the order of their times.`,
      }),
      same: said(Same, 'The targets that stay as they are.'),
      counts: Type.Array(Count, { description: 'Targets by account, day and state, where there are any.' }),
      months: Type.Array(Month, {
        description: 'The quota in the months that change, or that have one; empty for a key limited to clients.',
      }),
      shiftSkipped: Type.Array(ShiftSkip, {
        description: 'Targets of the campaign that would keep their times, and why.',
      }),
      anew: Type.Array(Anew, {
        maxItems: maxSimulatedChanges,
        description: `Posts of the plan to which POST /posts would answer something else, were they composed anew in the order in which they were: the first ${maxSimulatedChanges}. What is scheduled keeps its place all the same.`,
      }),
    },
    { description: 'What would become of a planned period under other rules.' },
  ),
);
