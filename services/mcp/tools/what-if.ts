import { type Static, Type } from 'typebox';
import type { Simulation } from '#schemas/http/simulation.ts';
import type { ToolCall } from '../call.ts';
import { reads, tool } from '../tool.ts';
import { Args, Id, Instant, joined, Maybe, Mode, many, Next } from '../words.ts';

/** What other rules would do to a plan, in a few lines: nothing is written. */

type Simulated = Static<typeof Simulation>;
type Change = Simulated['changes'][number];

const maxLines = 10;

const endOf = (call: ToolCall, one: Change['now']): string => {
  if (one === null) return 'none';
  const why = one.code === null ? '' : ` (${one.code}: ${call.cuts.text('reasons', one.message ?? '', 60)})`;
  return `${one.state} ${one.at}${why}`;
};

/** `bluesky target … of post …: goes_out 2026-01-31T08:00:00.000Z → goes_out 2026-02-01T08:00:00.000Z (cadence_reached: …)` */
const changeLine = (call: ToolCall, { platform, targetId, postId, copyOf, now, then }: Change): string => {
  const copy = copyOf === null ? '' : `, copy ${copyOf.occurrence} of ${copyOf.postId}`;
  return `- ${platform} target ${targetId} of post ${postId}${copy}: ${endOf(call, now)} → ${endOf(call, then)}`;
};

const monthLine = ({ month, limitNow, limitThen, now, then, over }: Simulated['months'][number]): string =>
  `- ${month}: ${now} of ${limitNow ?? 'any number'} → ${then} of ${limitThen ?? 'any number'}, ${over} over it`;

const anewLine = ({ postId, now, then }: Simulated['anew'][number]): string =>
  `- composed anew, post ${postId}: ${now?.code ?? 'taken'} → ${then?.code ?? 'taken'}`;

const linesOf = (call: ToolCall, { changes, months, shiftSkipped, anew }: Simulated): string[] => [
  ...call.cuts.rows('changes', changes, maxLines).map((one) => changeLine(call, one)),
  ...months.map(monthLine),
  ...call.cuts
    .rows('targets that keep their times', shiftSkipped, maxLines)
    .map(({ targetId, reason }) => `- target ${targetId} keeps its time: ${reason}`),
  ...call.cuts.rows('posts composed anew', anew, maxLines).map(anewLine),
];

export const whatIf = tool({
  name: 'what_if',
  title: 'What other rules would do',
  description:
    'What another pace of accounts, quota, recycling or a moved campaign would do to the plan of a client (default: 31 days): now → then. It changes nothing.',
  scopes: ['posts.read'],
  hints: reads,
  input: Args({
    clientId: Id(),
    to: Maybe(Instant()),
    cadence: Maybe(
      Type.Array(
        Args({
          platform: Maybe(Type.String()),
          perDay: Maybe(Type.Integer()),
          minIntervalMinutes: Maybe(Type.Integer()),
        }),
      ),
    ),
    quota: Maybe(Type.Integer({ description: 'Targets a month; -1: any number.' })),
    shift: Maybe(Args({ campaignId: Type.String(), minutes: Maybe(Type.Integer()), days: Maybe(Type.Integer()) })),
    recycling: Maybe(
      Type.Array(
        Args({
          postId: Type.String(),
          everyDays: Type.Integer(),
          times: Maybe(Type.Integer()),
          enabled: Maybe(Type.Boolean()),
        }),
      ),
    ),
  }),
  output: Type.Object({
    mode: Mode,
    changed: Type.Integer(),
    lines: Type.Array(Type.String()),
    nextStep: Next,
  }),
  run: async (call, { quota, ...asked }) => {
    const limit = quota === undefined ? {} : { quota: quota < 0 ? {} : { limit: quota } };
    const { data } = await call.invoke<Simulated>('createSimulation', { body: { ...asked, ...limit } });
    const head = `${many(data.changed, 'target')} of ${data.targets} until ${data.to} would change, ${data.same.count} would not.`;
    const lines = [head, ...linesOf(call, data)];
    const nextStep = 'Nothing was changed. An operator sets pace and quota; change_campaign moves a campaign.';
    return { text: joined(...lines, nextStep), data: { mode: call.mode, changed: data.changed, lines, nextStep } };
  },
});
