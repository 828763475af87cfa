import { createHash, randomUUID } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import path from 'node:path';
import { pipeline } from 'node:stream/promises';
import type { PublishMedia, PublishRequest } from '#contracts/ports/platform.ts';
import { kindOfType } from '#domain/media-types.ts';
import { effectiveOverrides, overrideRules, publishCheck, useOf } from '#domain/platforms/index.ts';
import type { Overrides } from '#domain/platforms/rules.ts';
import { UsageError } from '#runtime/process/usage-error.ts';
import type { Platform } from '#schemas/common.ts';
import type { Admin, Given } from './context.ts';

/** The file and the settings of the post by which an operator checks a network. */

export interface CheckPost {
  readonly overrides: PublishRequest['overrides'];
  readonly media: PublishRequest['media'];
}

/** Lends the file of a check to a network that fetches it from an address. */
export interface Lending {
  address(
    file: string,
    about: { readonly contentType: string; readonly bytes: number },
    ms: number,
    host?: 'any' | 'own',
  ): Promise<string>;
  /** Ends the address. Never rejects: the post may be out, and is to be deleted. */
  end(): Promise<void>;
}

/** An account has one place: what a check that is killed leaves behind, the next one replaces. */
export const lendingOf = (
  { blobs, note }: Pick<Admin, 'blobs' | 'note'>,
  workspaceId: string,
  account: PublishRequest['account'],
): Lending => {
  const key = `${workspaceId}/check-${account.id}/file`;
  let isLent = false;
  return {
    address: async (file, { contentType, bytes }, ms, host) => {
      isLent = true;
      await blobs.put(key, createReadStream(file), { contentType, bytes });
      const expiresAt = new Date(Date.now() + ms);
      return host === 'own' ? blobs.presignOwn(key, { expiresAt }) : blobs.presignGet(key, { contentType, expiresAt });
    },
    end: async () => {
      if (!isLent) return;
      await blobs.delete(key).catch((error: Error) => note(`The file ${key} could not be deleted: ${error.message}`));
    },
  };
};

const typeOf: Readonly<Record<string, string>> = {
  ...{ '.jpg': 'image/jpeg', '.jpeg': 'image/jpeg', '.png': 'image/png', '.webp': 'image/webp', '.gif': 'image/gif' },
  ...{ '.mp4': 'video/mp4', '.m4v': 'video/x-m4v', '.mov': 'video/quicktime', '.pdf': 'application/pdf' },
};

/** A file of this machine as the check's post has it: as it is, and not looked into. @throws UsageError */
const fileOf = async (
  platform: Platform,
  overrides: Overrides,
  at: string,
  lending: Lending,
): Promise<PublishMedia> => {
  const contentType = typeOf[path.extname(at).toLowerCase()];
  const kind = contentType === undefined ? null : kindOfType(contentType);
  if (contentType === undefined || kind === null) {
    throw new UsageError(`--media is a file that ends with one of ${Object.keys(typeOf).join(', ')}.`);
  }
  const file = path.resolve(at);
  const hash = createHash('sha256');
  const bytes = await pipeline(createReadStream(file), hash).then(
    () => stat(file).then(({ size }) => size),
    (error: Error) => {
      throw new UsageError(`--media cannot be read: ${error.message}`);
    },
  );
  return {
    ...{ mediaId: randomUUID(), kind, use: useOf(platform, overrides, [kind]), contentType, bytes },
    ...{ sha256: hash.digest('hex'), width: null, height: null, durationMs: null, altText: null },
    file: async () => file,
    url: (expiresInMs, host) => lending.address(file, { contentType, bytes }, expiresInMs, host),
  };
};

/** `boardId=1&title=Autumn`. @throws UsageError */
const settingsOf = (platform: Platform, text: string): Overrides => {
  const known = overrideRules(platform);
  return Object.fromEntries(
    [...new URLSearchParams(text)].map(([key, value]) => {
      const rule = known[key];
      if (rule === undefined) throw new UsageError(`--set takes ${Object.keys(known).join(', ')} for ${platform}.`);
      return [key, rule.type === 'boolean' && ['true', 'false'].includes(value) ? value === 'true' : value];
    }),
  );
};

/** What the post has beside its text. @throws UsageError the network takes no such post */
export const checkPostOf = async (
  platform: Platform,
  content: string,
  given: Given,
  lending: Lending,
): Promise<CheckPost> => {
  const settings = settingsOf(platform, given.flag('set') ?? '');
  const at = given.flag('media');
  const media = at === undefined ? [] : [await fileOf(platform, settings, at, lending)];
  const files = media.map(({ mediaId: id, kind }) => ({ id, kind, probe: null }));
  const refusal = publishCheck({ platform, content, overrides: settings, media: files });
  if (refusal !== null) throw new UsageError(`${refusal.message}. Settings go with --set, a file with --media.`);
  const overrides = effectiveOverrides(platform, settings, false, media[0]?.use ?? null) as CheckPost['overrides'];
  return { overrides, media };
};
