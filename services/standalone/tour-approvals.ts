import { setTimeout as delay } from 'node:timers/promises';
import type { Screen } from './screen.ts';
import type { TourClient } from './tour-client.ts';

/** A post that a guest of the client approves through a link, and a campaign that is moved by a day. */

interface Target {
  readonly id: string;
  readonly status: string;
  readonly scheduledAt: string;
}

interface Post {
  readonly id: string;
  readonly status: string;
  readonly approvalId: string | null;
  readonly targets: readonly Target[];
}

interface Decided {
  readonly status: string;
  readonly guestName: string | null;
  readonly comment: string | null;
}

interface Showing {
  readonly http: TourClient;
  readonly clientId: string;
  readonly screen: Screen;
  readonly signal: AbortSignal;
}

/** Milliseconds. */
const patienceMs = 20_000;
const weekMs = 7 * 86_400_000;
const dayMs = 86_400_000;

const guest = 'Mia from Northwind';

const statusesOf = ({ targets }: Post): string => [...new Set(targets.map(({ status }) => status))].join(', ');

/** What is read once it shows, or the last of what was read when the patience ends. */
export const shown = async <T>(read: () => Promise<T>, shows: (it: T) => boolean, signal: AbortSignal): Promise<T> => {
  for (const limit = performance.now() + patienceMs; ; await delay(50, undefined, { signal })) {
    const it = await read();
    if (shows(it) || performance.now() >= limit) return it;
  }
};

/** @returns whether both went as they should */
export const showApproval = async ({ http, clientId, screen, signal }: Showing): Promise<boolean> => {
  await http.patch(`/clients/${clientId}`, { approvalRequired: true });
  const held = await http.post<Post>('/posts', {
    clientId,
    content: 'Saturday: live jazz from eight.',
    targets: { mode: 'group', clientId, platforms: ['x', 'bluesky'] },
    schedule: { type: 'at', scheduledAt: new Date(Date.now() + weekMs).toISOString() },
  });
  screen.event('a post to approve', `${held.status}; ${held.targets.length} targets ${statusesOf(held)}`);
  const link = await http.post<{ readonly url: string }>(`/approvals/${held.approvalId}/links`, {});
  await http.decide(link.url, 'Saturday: live jazz', { decision: 'approve', name: guest, comment: 'Lovely.' });
  // The guest's decision is no write of this caller, so each read model may be a moment behind.
  const released = await shown(
    () => http.get<Post>(`/posts/${held.id}`),
    ({ targets }) => targets.every(({ status }) => status === 'pending'),
    signal,
  );
  const decided = await shown(
    () => http.get<Decided>(`/approvals/${held.approvalId}`),
    ({ status }) => status !== 'pending',
    signal,
  );
  const who = `by ${decided.guestName} through the link: “${decided.comment}”`;
  screen.event(decided.status, `${who}; ${released.targets.length} targets ${statusesOf(released)}`, decided.status);
  await http.patch(`/clients/${clientId}`, { approvalRequired: false });
  const isShifted = await showCampaign({ http, clientId, screen }, released);
  await http.delete(`/posts/${held.id}`);
  return decided.status === 'approved' && decided.guestName === guest && released.status === 'scheduled' && isShifted;
};

const showCampaign = async ({ http, clientId, screen }: Omit<Showing, 'signal'>, post: Post): Promise<boolean> => {
  const { id } = await http.post<{ readonly id: string }>('/campaigns', { name: 'Jazz nights', clientId });
  await http.post(`/campaigns/${id}/assign`, { postIds: [post.id] });
  const { shifted } = await http.post<{ readonly shifted: number }>(`/campaigns/${id}/shift`, { days: 1 });
  const { targets } = await http.get<Post>(`/posts/${post.id}`);
  const [before = '', after = ''] = [post, { targets }].map((one) => one.targets.map((t) => t.scheduledAt).sort()[0]);
  screen.event('campaign shifted', `${shifted} targets by a day: from ${before} to ${after}`);
  await http.delete(`/campaigns/${id}`);
  // A change of clocks makes a day an hour shorter or longer.
  return shifted === post.targets.length && Math.abs(Date.parse(after) - Date.parse(before) - dayMs) <= 3_600_000;
};
