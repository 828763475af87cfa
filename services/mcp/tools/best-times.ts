import { type Static, Type } from 'typebox';
import type { BestTime as BestTimeSchema } from '#schemas/http/best-times.ts';
import { reads, tool } from '../tool.ts';
import { Args, Id, joined, Maybe, Mode, Next, Nullable, Platforms } from '../words.ts';

type BestTime = Static<typeof BestTimeSchema>;

const days = ['Monday', 'Tuesday', 'Wednesday', 'Thursday', 'Friday', 'Saturday', 'Sunday'];

export const bestTimes = tool({
  name: 'best_times',
  title: 'Best times to post',
  description:
    'The hours of the week in which posts do best, the best first, from the posts of the last 90 days, and from general experience where there are few: then say so, basis tells. Use it when the person asks when to post, or leaves the time to you.',
  scopes: ['besttimes.read'],
  hints: reads,
  input: Args({
    clientId: Maybe(Id('Only accounts of this client, in its time zone.')),
    platforms: Maybe(Platforms('Only posts on these networks.')),
    count: Maybe(Type.Integer({ minimum: 1, maximum: 24, description: 'How many hours to answer. Default 5.' })),
  }),
  output: Type.Object({
    mode: Mode,
    timezone: Nullable(Type.String()),
    slots: Type.Array(
      Type.Object({
        weekday: Type.String(),
        hour: Type.Integer(),
        lift: Type.Number({ description: 'Expected engagement as a multiple of the usual.' }),
        sampleSize: Type.Integer({ description: 'Posts that were observed in exactly this hour.' }),
        basis: Type.String({ description: 'observed: it rests on posts of this hour; prior: it is an estimate.' }),
      }),
    ),
    nextStep: Next,
  }),
  run: async (call, { clientId, platforms, count = 5 }) => {
    const { data } = await call.invoke<BestTime[]>('listBestTimes', {
      query: { clientId, platform: platforms, limit: count },
    });
    const timezone = data[0]?.timezone ?? null;
    const slots = data.map(({ weekday, hour, lift, sampleSize, basis }) => ({
      weekday: days[weekday - 1] ?? String(weekday),
      ...{ hour, lift, sampleSize, basis },
    }));
    const nextStep = 'Pass a time as scheduledLocal to compose_post; its zone is that of the client or the account.';
    const lines = slots.map(
      ({ weekday, hour, lift, sampleSize, basis }) =>
        `- ${weekday} ${String(hour).padStart(2, '0')}:00: ${lift.toFixed(2)} times the usual (${basis === 'observed' ? `observed, ${sampleSize} posts` : 'an estimate'})`,
    );
    const text = joined(
      `The best hours to post, in ${timezone ?? 'the zone of the workspace'} (${call.mode}):`,
      ...lines,
      nextStep,
    );
    return { text, data: { mode: call.mode, timezone, slots, nextStep } };
  },
});
