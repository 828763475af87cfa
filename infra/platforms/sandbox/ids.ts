/** Ids that look like each network's own. */
import { createHash, randomBytes } from 'node:crypto';
import type { PublishRequest } from '#contracts/ports/platform.ts';
import type { Platform } from '#schemas/common.ts';

const base32 = 'abcdefghijklmnopqrstuvwxyz234567';
const tidAlphabet = '234567abcdefghijklmnopqrstuvwxyz';

const digits = (bytes: Buffer, count: number) =>
  (BigInt(`0x${bytes.toString('hex')}`) % 10n ** BigInt(count)).toString().padStart(count, '0');
const letters = (bytes: Buffer, alphabet: string, count: number) =>
  Array.from(bytes.subarray(0, count), (byte) => alphabet[byte % alphabet.length]).join('');
const sha256 = (text: string) => createHash('sha256').update(text).digest();

export const contentHash = (content: string): string => sha256(content).toString('hex');

/** Of all that a container is made of: text, files, and the post it replies to. */
export const partHash = ({ content, thread, media }: Pick<PublishRequest, 'content' | 'thread' | 'media'>): string => {
  const parent = thread?.replyTo?.parent ?? null;
  if (parent === null && media.length === 0) return contentHash(content);
  return contentHash(JSON.stringify([content, parent, media.map((one) => one.sha256)]));
};

/**
 * Bluesky's record key (a TID: 13 of its letters, the first a digit or below k), chosen before the write. It is a
 * function of the target, so that every attempt writes the same record and there is nothing to remember in between.
 */
export const recordKey = (targetId: string): string => `3${letters(sha256(targetId), tidAlphabet, 12)}`;

/** A new container, upload session or publish id. */
export function handleId(platform: Platform): string {
  const random = randomBytes(24);
  if (platform === 'tiktok') return `v_pub_file~v2-1.7${digits(random, 18)}`;
  if (platform === 'youtube') return random.toString('base64url');
  return `179${digits(random, 14)}`;
}

export interface PostIds {
  readonly id: string;
  readonly code: string;
}

/** `#` stands for the chat's next message number, which the database fills in. */
export function postIds(platform: Platform, account: string, key: string, nowMs: number): PostIds {
  const random = randomBytes(16);
  const code = random.toString('base64url').slice(0, 10);
  switch (platform) {
    case 'x': {
      const id = ((BigInt(nowMs) - 1_288_834_974_657n) << 22n) | (BigInt(`0x${random.toString('hex')}`) & 0x3fffffn);
      return { id: id.toString(), code };
    }
    case 'instagram':
      return { id: `180${digits(random, 14)}`, code: `D${code}` };
    case 'threads':
      return { id: `180${digits(random, 14)}`, code: `D${code}` };
    case 'tiktok':
      return { id: `7${digits(random, 18)}`, code };
    case 'youtube':
      return { id: random.toString('base64url').slice(0, 11), code };
    case 'facebook':
      return { id: `${account}_${digits(random, 15)}`, code };
    case 'linkedin':
      return { id: `urn:li:share:7${digits(random, 18)}`, code };
    case 'pinterest':
      return { id: `1${digits(random, 17)}`, code };
    case 'bluesky':
      return { id: `at://${account}/app.bsky.feed.post/${key}`, code: key };
    case 'telegram':
      return { id: `${account}:#`, code: '#' };
  }
}

export interface SandboxProfile {
  readonly externalId: string;
  readonly username: string;
  readonly displayName: string;
  /** A sandbox account has no picture. */
  readonly avatarUrl: null;
  readonly scopes: readonly string[];
}

function accountId(platform: Platform, seed: Buffer): string {
  switch (platform) {
    case 'x':
      return `1${digits(seed, 18)}`;
    case 'instagram':
      return `1784${digits(seed, 13)}`;
    case 'threads':
      return `2${digits(seed, 16)}`;
    case 'tiktok':
      return `-000${seed.toString('base64url').slice(0, 32)}`;
    case 'youtube':
      return `UC${seed.toString('base64url').slice(0, 22)}`;
    case 'facebook':
      return `1${digits(seed, 14)}`;
    case 'linkedin':
      return `urn:li:organization:${digits(seed, 8)}`;
    case 'pinterest':
      return `9${digits(seed, 17)}`;
    case 'bluesky':
      return `did:plc:${letters(seed, base32, 24)}`;
    case 'telegram':
      return `-1001${digits(seed, 9)}`;
  }
}

/** The account a sandbox network has under a username: the same one every time, so that a reconnect finds it again. */
export function sandboxProfile(platform: Platform, username: string): SandboxProfile {
  const name = username.trim().replace(/^@/, '').toLowerCase();
  const words = name.split(/[^\p{L}\p{N}]+/u).filter((word) => word !== '');
  return {
    externalId: accountId(platform, sha256(`${platform}:${name}`)),
    username: name,
    displayName: words.map((word) => word.slice(0, 1).toUpperCase() + word.slice(1)).join(' ') || name,
    avatarUrl: null,
    scopes: ['sandbox.publish', 'sandbox.read'],
  };
}
