/** The main job over HTTP, as a caller does it; each exchange is validated against the contract. */
import assert from 'node:assert/strict';
import { platforms } from '#schemas/common.ts';
import { clip } from './clip.ts';
import type { Answered, Caller } from './http.ts';
import { sparing, until } from './until.ts';
import { uploaded } from './uploads.ts';

/** Accounts whose sandbox misbehaves once, by name. */
export const unlucky: Readonly<Record<string, string>> = {
  linkedin: 'rate-limit-once-northwind',
  facebook: 'timeout-after-once-northwind',
};

export interface ShownTarget {
  readonly id: string;
  readonly platform: string;
  readonly status: string;
  readonly attempts: number;
  readonly permalink: string | null;
  readonly publishedAt: string | null;
}

export const targetsOf = ({ data }: Answered): readonly ShownTarget[] => data.targets as readonly ShownTarget[];

const ok = (answered: Answered): Answered => {
  assert.equal(answered.status, 200, answered.text);
  return answered;
};

export interface Prepared {
  readonly clientId: string;
  readonly inviteUrl: string;
  readonly token: string;
}

/** A client with ten sandbox accounts, connected through the form of the invite page. */
export const prepare = async (
  http: Caller,
  { name = 'Northwind', usernames = unlucky }: { name?: string; usernames?: Readonly<Record<string, string>> } = {},
): Promise<Prepared> => {
  const { data: client } = ok(await http.post('/clients', { name, type: 'brand', timezone: 'Europe/Berlin' }));
  const { data: invite } = ok(
    await http.post(`/clients/${client.id}/connect-invites`, { platforms, expiresInHours: 1 }),
  );
  const inviteUrl = String(invite.url);
  for (const platform of platforms) {
    const body = new URLSearchParams({ platform, username: usernames[platform] ?? 'northwind', timezone: '' });
    const answer = await fetch(inviteUrl, { method: 'POST', body, redirect: 'manual' });
    assert.equal(answer.status, 303, `${platform}: ${await answer.text()}`);
  }
  return { clientId: client.id, inviteUrl, token: String(invite.token) };
};

const short = 'Winter menu is here ❄️☕ Maple cortado, and a very good hot chocolate.';

/** Uploads a clip that every network accepts and waits until it is publishable. Returns its id. */
export const upload = async (http: Caller, within = 60_000): Promise<string> => {
  const body = await clip();
  const offer = ok(await uploaded(http, { fileName: 'menu.mp4', contentType: 'video/mp4', body }));
  const id = String(offer.data.assetId);
  ok(await http.post('/media', { assetId: id }));
  await until(
    `asset ${id} publishable`,
    async () => {
      const answered = await http.get(`/media/${id}`).catch(() => null);
      return answered?.data.publishable === true ? answered : null;
    },
    { ...sparing, withinMs: within },
  );
  return id;
};

/**
 * One post to every account of the client. Networks without text-only posts need a file.
 * @param mediaId for those networks; null: there are none
 */
export const compose = async (
  http: Caller,
  clientId: string,
  schedule: Readonly<Record<string, unknown>> = { type: 'now' },
  more: Readonly<Record<string, unknown>> = {},
  mediaId: string | null = null,
): Promise<Answered> =>
  ok(
    await http.post('/posts', {
      clientId,
      content: short,
      targets: { mode: 'group', clientId },
      variants: [
        { platform: 'instagram', overrides: {} },
        { platform: 'tiktok', overrides: { privacyLevel: 'PUBLIC_TO_EVERYONE' } },
        { platform: 'pinterest', overrides: { boardId: '918273645', title: 'Winter menu' } },
        { platform: 'youtube', overrides: { title: 'Winter menu' } },
      ].map((variant) => (mediaId === null ? variant : { ...variant, mediaIdsOverride: [mediaId] })),
      schedule,
      ...more,
    }),
  );

/** Waits until every target of the post is published and the post is too; returns the post. */
export const published = async (http: Caller, postId: string, within = 60_000): Promise<Answered> => {
  let last: Answered | null = null;
  try {
    return await until(
      `post ${postId} published`,
      async () => {
        const answered = await http.get(`/posts/${postId}`).catch(() => null);
        if (answered?.status !== 200) return null;
        last = answered;
        if (answered.data.status !== 'published') return null;
        return targetsOf(answered).every(({ status }) => status === 'published') ? answered : null;
      },
      { ...sparing, withinMs: within },
    );
  } catch (error) {
    throw new Error(`as it was seen last: ${JSON.stringify(last)}`, { cause: error });
  }
};
