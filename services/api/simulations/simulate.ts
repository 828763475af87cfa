import { dayOf } from '#domain/report-windows.ts';
import type { Foreseen, ForeseenState } from '#domain/what-if.ts';
import { maxShownSkips } from '#schemas/http/campaign-shift.ts';
import { maxSimulatedChanges, maxSimulatedSame, Simulation, SimulationCreate } from '#schemas/http/simulation.ts';
import { operation, type Tag } from '../call/operation.ts';
import { invalid } from '../call/refusal.ts';
import { type Foreseeing, foreseeTwice } from './foresee.ts';
import type { Simulating } from './read.ts';

/** What would become of a planned period under other rules: the differences. */

const simulationsTag: Tag = {
  place: 75,
  name: 'simulations',
  noun: 'simulation',
  about: 'What would become of a plan under other rules.',
};

const dayMs = 86_400_000;
const defaultDays = 31;
const maxDays = 92;
/** Milliseconds that the begin of a period may lie in the past, as the time of a post may. */
const pastMs = 60_000;

const iso = (at: number): string => new Date(at).toISOString();

/** @throws Refusal 422 for a period that is past or too long, and for a body that changes nothing */
const periodOf = (call: Simulating): { readonly from: string; readonly to: string } => {
  const { cadence, quota, recycling, shift, ...body } = call.body;
  if (cadence === undefined && quota === undefined && recycling === undefined && shift === undefined) {
    throw invalid('', 'required', 'at least one of cadence, quota, recycling and shift is required');
  }
  if (quota !== undefined && call.principal.clientIds !== null) {
    throw invalid('/quota', 'not_allowed', 'is that of the whole workspace, and the credential is limited to clients');
  }
  if (shift !== undefined && (shift.minutes === undefined) === (shift.days === undefined)) {
    throw invalid('/shift', 'exclusive', 'exactly one of minutes and days must be sent');
  }
  const from = body.from === undefined ? Date.parse(call.now) : Date.parse(body.from);
  if (from < Date.parse(call.now) - pastMs) throw invalid('/from', 'out_of_range', 'must not lie in the past');
  const to = body.to === undefined ? from + defaultDays * dayMs : Date.parse(body.to);
  if (to <= from) throw invalid('/to', 'wrong_order', 'must be after from');
  if (to - from > maxDays * dayMs) throw invalid('/to', 'out_of_range', `must be at most ${maxDays} days after from`);
  return { from: iso(from), to: iso(to) };
};

const outcomeOf = (one: Foreseen | undefined) =>
  one === undefined ? null : { state: one.state, at: iso(one.at), code: one.code, message: one.message };

const isSame = (a: Foreseen | undefined, b: Foreseen | undefined): boolean =>
  a?.state === b?.state && a?.at === b?.at && a?.code === b?.code;

interface Pair {
  readonly id: string;
  readonly now: Foreseen | undefined;
  readonly then: Foreseen | undefined;
}

const timeOf = ({ now, then }: Pair): number => (now ?? then)?.at ?? 0;

const countsOf = (pairs: readonly Pair[], timezone: string) => {
  interface Count {
    readonly accountId: string;
    readonly day: string;
    readonly state: ForeseenState;
    now: number;
    then: number;
  }
  const found = new Map<string, Count>();
  for (const pair of pairs) {
    for (const side of ['now', 'then'] as const) {
      const one = pair[side];
      if (one === undefined) continue;
      const { accountId, state } = one;
      const day = dayOf(iso(one.at), timezone);
      const key = `${day} ${accountId} ${state}`;
      const count = found.get(key) ?? { accountId, day, state, now: 0, then: 0 };
      count[side] += 1;
      found.set(key, count);
    }
  }
  return [...found].toSorted(([a], [b]) => (a < b ? -1 : 1)).map(([, count]) => count);
};

const monthsOf = (now: Foreseeing, then: Foreseeing) =>
  [...new Set([...now.counted.keys(), ...then.counted.keys()])].toSorted().flatMap((month) => {
    const [before, after] = [now.counted.get(month) ?? 0, then.counted.get(month) ?? 0];
    if (now.limit === null && then.limit === null && before === after) return [];
    const over = then.limit === null ? 0 : Math.max(0, after - then.limit);
    return [{ month, limitNow: now.limit, limitThen: then.limit, now: before, then: after, over }];
  });

const anewOf = (now: Foreseeing, then: Foreseeing, shows: (postId: string) => boolean) =>
  [...new Set([...now.anew.keys(), ...then.anew.keys()])].filter(shows).flatMap((postId) => {
    const [before = null, after = null] = [now.anew.get(postId), then.anew.get(postId)];
    return before?.code === after?.code ? [] : [{ postId, now: before, then: after }];
  });

const simulate = async (call: Simulating) => {
  const { from, to } = periodOf(call);
  const { timezone, rows, now, then } = await foreseeTwice(call, to);
  const { clientIds } = call.principal;
  // Posts of other clients may go to accounts of this one: they are counted, and not shown.
  const hidden = rows.filter(({ postClientId }) => clientIds?.includes(postClientId) === false);
  const hiddenIds = new Set(hidden.map(({ id }) => id));
  const hiddenPosts = new Set(hidden.map(({ postId }) => postId));
  const [begin, end] = [Date.parse(from), Date.parse(to)];
  const isWithin = (one: Foreseen | undefined): boolean => one !== undefined && one.dueAt >= begin && one.dueAt < end;
  const pairs = [...new Set([...now.found.keys(), ...then.found.keys()])]
    .filter((id) => !hiddenIds.has(id))
    .map((id): Pair => ({ id, now: now.found.get(id), then: then.found.get(id) }))
    .filter((pair) => isWithin(pair.now) || isWithin(pair.then))
    .toSorted((a, b) => timeOf(a) - timeOf(b) || (a.id < b.id ? -1 : 1));
  const changed = pairs.filter((pair) => !isSame(pair.now, pair.then));
  const same = pairs.filter((pair) => isSame(pair.now, pair.then)).map(({ id }) => id);
  return {
    object: 'simulation' as const,
    ...{ clientId: call.body.clientId, from, to, targets: pairs.length, changed: changed.length },
    changes: changed.slice(0, maxSimulatedChanges).flatMap((pair) => {
      const one = pair.now ?? pair.then;
      if (one === undefined) return [];
      const { targetId, postId, accountId, platform, copyOf } = one;
      const about = { targetId, postId, accountId, platform, copyOf };
      return [{ ...about, now: outcomeOf(pair.now), then: outcomeOf(pair.then) }];
    }),
    same: { count: same.length, targetIds: same.slice(0, maxSimulatedSame) },
    counts: countsOf(pairs, timezone),
    months: clientIds === null ? monthsOf(now, then) : [],
    shiftSkipped: then.skipped.filter(({ targetId }) => !hiddenIds.has(targetId)).slice(0, maxShownSkips),
    anew: anewOf(now, then, (postId) => !hiddenPosts.has(postId)).slice(0, maxSimulatedChanges),
  };
};

const exampleIds = {
  client: '315d0d36-9a7d-573e-8bc2-d5133b51f29b',
  account: '7d2f7f0e-6f43-5e0e-8d3c-2b6a4c1f0002',
  post: '0198a5f0-7c1e-7b10-9c55-3a1d5b6e0001',
  target: '4b2f7c1a-9d0e-5f3b-8a6c-1e2d3c4b5a60',
};

export const createSimulation = operation({
  id: 'createSimulation',
  method: 'POST',
  path: '/simulations',
  tag: simulationsTag,
  summary: 'Ask what other rules would do to a plan',
  description: [
    'Goes through the planned targets of a client’s accounts from now until the end of the period, once under the rules as they are and once under the others, and answers what differs. **It writes nothing**: no event, no key. The decisions are those of the service itself: the slot that a target gets when it is due, the checks of a copy of a recycled post an hour before it is due, the places of the quota, the shift of a campaign.',
    'What is scheduled stays scheduled under a change: other limits let a target wait for the next free time (`cadence_reached`) or fail (`cadence_never_fits`), and a smaller quota takes no place back; it refuses new copies and moves. What POST /posts would answer if the same plan were composed anew is in `anew`.',
    'It takes for granted what no rule of the service decides: accounts stay connected, files are ready, networks take every post at once, nobody changes the plan. So times are those of a network that answers within the second. Held targets are shown at their times, and stay held. The content of a copy is not checked again.',
    'At most 1,000 planned targets and 200 recycled posts until the end of the period; more are refused. A key limited to clients cannot try another quota.',
  ].join('\n\n'),
  scope: 'posts.read',
  limited: 'ids',
  idempotent: 'none',
  cost: 10,
  body: SimulationCreate,
  answer: Simulation,
  codes: ['post_not_scheduled'],
  example: {
    body: { clientId: exampleIds.client, cadence: [{ perDay: 3 }] },
    data: {
      object: 'simulation',
      ...{ clientId: exampleIds.client, from: '2026-01-31T08:00:00.000Z', to: '2026-03-03T08:00:00.000Z' },
      ...{ targets: 4, changed: 1 },
      changes: [
        {
          ...{ targetId: exampleIds.target, postId: exampleIds.post, accountId: exampleIds.account },
          ...{ platform: 'bluesky', copyOf: null },
          now: { state: 'goes_out', at: '2026-02-01T17:00:00.000Z', code: null, message: null },
          then: {
            ...{ state: 'goes_out', at: '2026-02-02T08:00:00.000Z', code: 'cadence_reached' },
            message: 'The account has published as often as it may for now; the publisher tries again at retryAt.',
          },
        },
      ],
      same: { count: 3, targetIds: [] },
      counts: [
        { accountId: exampleIds.account, day: '2026-02-01', state: 'goes_out', now: 4, then: 3 },
        { accountId: exampleIds.account, day: '2026-02-02', state: 'goes_out', now: 0, then: 1 },
      ],
      ...{ months: [], shiftSkipped: [] },
      anew: [
        {
          postId: exampleIds.post,
          now: null,
          then: { code: 'cadence_exceeded', message: 'the account may publish 3 targets within 24 hours' },
        },
      ],
    },
  },
  handle: async (call) => ({ data: await simulate(call) }),
});
