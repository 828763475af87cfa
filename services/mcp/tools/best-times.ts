import { type Static, Type } from 'typebox';
import type { BestTime as BestTimeSchema } from '#schemas/http/best-times.ts';
import { reads, tool } from '../tool.ts';
import { Args, Id, joined, Maybe, Mode, Next, Nullable, Platforms } from '../words.ts';
import { localTime } from './post-words.ts';

type BestTime = Static<typeof BestTimeSchema>;

const days = ['Monday', 'Tuesday', 'Wednesday', 'Thursday', 'Friday', 'Saturday', 'Sunday'];

/** The next such hour as wall-clock time: a model that counts days itself is often wrong by one. */
const nextOf = (now: number, timezone: string, weekday: number, hour: number): string => {
  const [today = '', time = ''] = localTime(new Date(now).toISOString(), timezone).split(' ');
  const midnight = Date.parse(`${today}T00:00:00Z`);
  const ahead = (weekday - (new Date(midnight).getUTCDay() || 7) + 7) % 7;
  const isOver = ahead === 0 && Number.parseInt(time, 10) >= hour;
  const date = new Date(midnight + (isOver ? 7 : ahead) * 86_400_000).toISOString().split('T')[0];
  return `${date}T${String(hour).padStart(2, '0')}:00`;
};

export const bestTimes = tool({
  name: 'best_times',
  title: 'Best times to post',
  description:
    'The hours of the week in which posts do best, the best first, from the posts of the last 90 days, and from general experience where there are few: then say so, basis tells. Use it when the person leaves the time to you.',
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
        next: Type.String({ description: 'The next such hour, for scheduledLocal.' }),
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
    const zone = timezone ?? 'UTC';
    const now = await call.workspaceNow();
    const slots = data.map(({ weekday, hour, lift, sampleSize, basis }) => ({
      weekday: days[weekday - 1] ?? String(weekday),
      ...{ hour, lift, sampleSize, basis },
      next: nextOf(now, zone, weekday, hour),
    }));
    const nextStep = 'Pass next as scheduledLocal and this timezone to compose_post.';
    const lines = slots.map(
      ({ weekday, next, lift, sampleSize, basis }) =>
        `- ${weekday} ${next.slice(11)}, next ${next}: ${lift.toFixed(2)} times the usual (${basis === 'observed' ? `observed, ${sampleSize} posts` : 'an estimate'})`,
    );
    const text = joined(
      `The best hours to post, in ${timezone ?? 'the zone of the workspace'} (${call.mode}):`,
      ...lines,
      nextStep,
    );
    return { text, data: { mode: call.mode, timezone, slots, nextStep } };
  },
});
