import { setTimeout as delay } from 'node:timers/promises';
import type { Screen } from './screen.ts';
import type { TourClient } from './tour-client.ts';

/** A post for the network's own scheduler, and its way back: youtube has it at once, and deletes it again. */

interface Target {
  readonly id: string;
  readonly status: string;
  readonly scheduledAt: string;
  readonly undo: string | null;
}

/** Milliseconds. */
const patienceMs = 20_000;
const hourMs = 3_600_000;

export const showHandOver = async ({
  http,
  clientId,
  clip,
  screen,
  signal,
}: {
  readonly http: TourClient;
  readonly clientId: string;
  readonly clip: string;
  readonly screen: Screen;
  readonly signal: AbortSignal;
}): Promise<boolean> => {
  const { targets } = await http.post<{ readonly targets: readonly Target[] }>('/posts', {
    clientId,
    content: 'How we roast: a minute at the drum.',
    targets: { mode: 'group', clientId, platforms: ['youtube'] },
    mediaIds: [clip],
    schedule: { type: 'at', scheduledAt: new Date(Date.now() + hourMs).toISOString() },
    scheduleMode: 'native',
  });
  const [target] = targets;
  if (target === undefined) return false;
  const until = async (status: string): Promise<Target> => {
    for (const limit = performance.now() + patienceMs; ; await delay(100, undefined, { signal })) {
      const now = await http.get<Target>(`/post-targets/${target.id}`);
      if (now.status === status || performance.now() > limit) return now;
    }
  };
  const handed = await until('handed_to_platform');
  screen.event(`youtube ${handed.status}`, `the network publishes it at ${handed.scheduledAt}`, handed.status);
  const asked = await http.post<Target>(`/post-targets/${target.id}/cancel`, undefined);
  screen.event('taken back', `undo ${asked.undo}`);
  const canceled = await until('canceled');
  screen.event(`youtube ${canceled.status}`, `undo ${canceled.undo}: the network deleted it first`, canceled.status);
  return handed.status === 'handed_to_platform' && canceled.status === 'canceled' && canceled.undo === 'done';
};
