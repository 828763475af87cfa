/** Ids in the form of each network's own ones, and hashes that identify a post by its content. */
import { randomBytes } from 'node:crypto';
import type { PublishRequest } from '#contracts/ports/platform.ts';
import type { Platform } from '#schemas/common.ts';
import { digits, letters, sha256, tidAlphabet } from './id-parts.ts';
import type { PostIds } from './imitation.ts';
import { imitations } from './imitations.ts';

export const contentHash = (content: string): string => sha256(content).toString('hex');

/** Hash of everything in a container: text, files, and the post that it replies to. */
export const segmentHash = ({
  content,
  thread,
  media,
}: Pick<PublishRequest, 'content' | 'thread' | 'media'>): string => {
  const parent = thread?.replyTo?.parent ?? null;
  if (parent === null && media.length === 0) return contentHash(content);
  return contentHash(JSON.stringify([content, parent, media.map((one) => one.sha256)]));
};

/**
 * Bluesky's record key (a TID: 13 letters of its alphabet, the first a digit or below k), chosen before the write. The
 * key follows from the target, so that every attempt writes the same record and no state is kept in between.
 */
export const recordKey = (targetId: string): string => `3${letters(sha256(targetId), tidAlphabet, 12)}`;

/** The id of a new container, upload session or publish. */
export function handleId(platform: Platform): string {
  const random = randomBytes(24);
  return imitations[platform].handleId?.(random) ?? `179${digits(random, 14)}`;
}

/** `#` stands for the chat's next message number, which the database fills in. */
export function postIds(platform: Platform, account: string, key: string, nowMs: number): PostIds {
  const random = randomBytes(16);
  const code = random.toString('base64url').slice(0, 10);
  return imitations[platform].postIds({ random, code, account, key, nowMs });
}

export interface SandboxProfile {
  readonly externalId: string;
  readonly username: string;
  readonly displayName: string;
  /** A sandbox account has no picture. */
  readonly avatarUrl: null;
  readonly scopes: readonly string[];
}

/** The permission to comment. */
export const commentScope = 'sandbox.comment';
/** An account whose name begins like this grants all but the permission to comment. */
const withoutComments = 'no-comments-';

/** An account whose name begins like this may set no cover behind the publication. */
export const withoutCovers = 'no-covers-';

/** The network shows an account whose name begins like this under another name than at its connection. */
const renamed = 'renamed-';

/** The account under a username: always the same one, so that a reconnect finds it again. */
export function sandboxProfile(platform: Platform, username: string): SandboxProfile {
  const name = username.trim().replace(/^@/, '').toLowerCase();
  const words = name.split(/[^\p{L}\p{N}]+/u).filter((word) => word !== '');
  return {
    externalId: imitations[platform].accountId(sha256(`${platform}:${name}`), name),
    username: name,
    displayName: words.map((word) => word.slice(0, 1).toUpperCase() + word.slice(1)).join(' ') || name,
    avatarUrl: null,
    scopes: [
      ...['sandbox.publish', 'sandbox.read'],
      ...(name.startsWith(withoutComments) ? [] : [commentScope]),
      ...(imitations[platform].scopes?.(name) ?? []),
    ],
  };
}

/** How the network shows the account later. */
export function shownProfile(
  platform: Platform,
  username: string,
): Pick<SandboxProfile, 'username' | 'displayName' | 'avatarUrl'> {
  const { username: name, displayName, avatarUrl } = sandboxProfile(platform, username);
  return { username: name, displayName: name.startsWith(renamed) ? `${displayName} (new)` : displayName, avatarUrl };
}
