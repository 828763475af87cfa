import { BlobError } from '#contracts/ports/blob-store.ts';
import { kindOfType, largestOf, takenTypes } from '#domain/media-types.ts';
import { livePlatforms } from '#projections/models/accounts.ts';
import { Unavailable } from '#runtime/eventing/domain-store.ts';
import type { Platform } from '#schemas/common.ts';
import { MediaUsage } from '#services/workflows/media-usage.ts';
import type { Call } from '../call/operation.ts';
import { invalid, Refusal } from '../call/refusal.ts';
import { ownClient } from '../posts/checks.ts';

/** Values that are derived from a request for an asset, and the rules that a schema cannot say. */

/** The type in lower case. @throws Refusal 422 for a type that is not taken, and for more bytes than its kind may have */
export const requireTakenType = (contentType: string, bytes: number): string => {
  const type = contentType.trim().toLowerCase();
  const kind = kindOfType(type);
  if (kind === null) throw invalid('/contentType', 'not_allowed', `must be one of: ${takenTypes.join(', ')}`);
  if (bytes > largestOf[kind])
    throw invalid('/bytes', 'too_large', `must be at most ${largestOf[kind]} for a file of kind ${kind}`);
  return type;
};

const longest = 255;

/** Removes control characters, which split headers, and direction marks, which make a name show a false extension. */
const cleanName = (text: string): string =>
  text
    .toWellFormed()
    .normalize('NFC')
    .replace(/[\p{Cc}\p{Zl}\p{Zp}\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff]/gu, '')
    .trim();

/** A name that a person gave; never empty. */
export const nameOf = (text: string): string => {
  const name = cleanName(text);
  return name === '' ? 'file' : shortened(name);
};

/** The last part of a path; never empty. */
export const fileNameOf = (text: string): string => {
  const name = cleanName(text.split(/[/\\]/).at(-1) ?? '');
  return /^\.*$/.test(name) ? 'file' : shortened(name);
};

/** Keeps a short extension; a pair is not cut in half. */
const shortened = (name: string): string => {
  if (name.length <= longest) return name;
  const extension = /\.[A-Za-z0-9]{1,10}$/.exec(name)?.[0] ?? '';
  return name.slice(0, longest - extension.length).replace(/[\ud800-\udbff]$/, '') + extension;
};

/** The name of a file from this address, unless the request names it. */
export const fileNameOfUrl = ({ pathname, hostname }: URL): string => {
  const last = pathname.split('/').at(-1) ?? '';
  let name = last;
  try {
    name = decodeURIComponent(last);
  } catch {
    // The name is not UTF-8: it stays as it is written.
  }
  return fileNameOf(name === '' ? hostname : name);
};

type Asking = Pick<Call, 'deps' | 'workspaceId' | 'behind'>;

/**
 * Requires a client that may own an asset. @throws Rejection 422 `validation_failed` (unknown or foreign),
 * `client_archived`
 */
export const requireLiveClient = async (call: Asking, clientId: string | null): Promise<void> => {
  if (clientId === null) return;
  await call.behind(['workspace']);
  await ownClient(call, clientId);
};

/** The platforms sent, else all with a connected account: of the asset's client, or of the workspace. */
export const platformsOf = async (
  call: Asking,
  clientId: string | null,
  sent: readonly Platform[] | undefined,
): Promise<Platform[]> => {
  if (sent !== undefined) return [...new Set(sent)];
  await call.behind(['workspace']);
  return [...(await livePlatforms(call.deps.knex, call.workspaceId, clientId))];
};

/** Time between the reservation of room and its use, milliseconds: then a worker checks whether the file has come. */
const settledMs = 3_600_000;

/**
 * Counts the bytes of an asset before they arrive. @param until when its address expires; null: the bytes are here, or
 * on their way
 * @throws Refusal 422 `media_quota_exceeded`
 */
export const requireRoom = async (
  { deps, principal, now }: Pick<Call, 'deps' | 'principal' | 'now'>,
  assetId: string,
  bytes: number,
  until: Date | null = null,
): Promise<void> => {
  const usage = new MediaUsage(deps.pool, deps.mediaQuota);
  const customer = principal.liveWorkspaceId;
  if (await usage.reserve(assetId, customer, bytes, until ?? new Date(Date.parse(now) + settledMs))) return;
  const { bytes: usedBytes, quota: quotaBytes } = await usage.of(customer);
  throw new Refusal(
    'media_quota_exceeded',
    `${usedBytes} of ${quotaBytes} bytes are taken, ${bytes} more were asked for.`,
    {
      extra: { usedBytes, quotaBytes },
    },
  );
};

/** Calls the blob store. @throws Unavailable when it does not answer, like any other store */
export const unavailable = async <T>(ask: () => Promise<T>): Promise<T> => {
  try {
    return await ask();
  } catch (error) {
    if (error instanceof BlobError && error.code === 'unavailable') {
      throw new Unavailable('The blob store does not answer.', { cause: error });
    }
    throw error;
  }
};
