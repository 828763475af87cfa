import { setTimeout as delay } from 'node:timers/promises';
import type { Screen } from './screen.ts';
import type { TourClient } from './tour-client.ts';

/** One real post: an account of Bluesky by its app password, and what the network shows of it. */

export interface RealAccount {
  readonly handle: string;
  readonly password: string;
}

interface Account {
  readonly clientId: string;
  readonly username: string | null;
  readonly status: string;
}

interface Target {
  readonly status: string;
  readonly permalink: string | null;
  readonly failure: { readonly code: string; readonly message?: string } | null;
}

/** Milliseconds. */
const patienceMs = 30_000;

/** Asks until the answer is settled, or time is up: then it answers what it saw last. */
const settled = async <T>(ask: () => Promise<T>, isSettled: (seen: T) => boolean): Promise<T> => {
  for (const limit = performance.now() + patienceMs; ; await delay(100)) {
    const seen = await ask();
    if (isSettled(seen) || performance.now() > limit) return seen;
  }
};

/** A later tour finds the account where the first one has connected it. */
const clientOf = async (http: TourClient, { handle, password }: RealAccount): Promise<string> => {
  const find = async () => {
    const accounts = await http.get<readonly Account[]>('/accounts?platform=bluesky&limit=100');
    return accounts.find(({ username, status }) => username === handle && status === 'connected')?.clientId ?? null;
  };
  const known = await find();
  if (known !== null) return known;
  const { id } = await http.post<{ readonly id: string }>('/clients', { name: handle, type: 'brand' });
  const invite = await http.post<{ readonly url: string }>(`/clients/${id}/connect-invites`, {
    platforms: ['bluesky'],
  });
  await http.connect(invite.url, { platform: 'bluesky', username: handle, password });
  return (await settled(find, (found) => found !== null)) ?? id;
};

export const showReal = async ({
  http,
  real,
  content,
  screen,
}: {
  readonly http: TourClient;
  readonly real: RealAccount;
  readonly content: string;
  readonly screen: Pick<Screen, 'event'>;
}): Promise<boolean> => {
  // A wrong password is no reason to stop serving.
  const clientId = await clientOf(http, real).catch((error: Error) => {
    screen.event('bluesky not connected', error.message, 'failed');
    return null;
  });
  if (clientId === null) return false;
  screen.event('bluesky connected', `${real.handle}, for real, by an app password`);
  const { id } = await http.post<{ readonly id: string }>('/posts', {
    ...{ clientId, content, targets: { mode: 'group', clientId, platforms: ['bluesky'] }, schedule: { type: 'now' } },
  });
  const ask = async () => (await http.get<{ readonly targets: readonly Target[] }>(`/posts/${id}`)).targets[0];
  const target = await settled(ask, (seen) => ['published', 'failed'].includes(seen?.status ?? ''));
  const said = target?.permalink ?? target?.failure?.code ?? 'no answer yet';
  screen.event(`bluesky ${target?.status}`, `${said}  (a real post: delete it there)`, target?.status);
  return target?.status === 'published';
};
