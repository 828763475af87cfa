import type { NetworkCall } from '#contracts/ports/network-http.ts';
import type { PublishRequest } from '#contracts/ports/platform.ts';
import { type Members, membersOf, textIn } from '../shared/members.ts';
import type { Failed } from '../shared/outcomes.ts';
import { hasEnded, mediaFailure, notReached, outcomeOf } from './errors.ts';
import { type BlobRef, blobOf } from './shapes.ts';
import type { Uploading } from './upload.ts';
import { type XrpcAsk, type XrpcResult, xrpc } from './xrpc.ts';

/** Calls of the service that makes videos ready (lexicons app.bsky.video.*), and the tokens that it takes. */

export interface VideoOptions {
  readonly videoService: string;
  /** Milliseconds between two questions. Default 1,500. */
  readonly videoPollMs?: number;
  /** Milliseconds that one attempt waits. Default 40,000. */
  readonly videoWaitMs?: number;
}

export const defaultPollMs = 1_500;

export interface Job {
  readonly jobId: string | null;
  readonly state: string;
  readonly blob: BlobRef | null;
  readonly said: string | null;
  /** A failure of theirs, which another upload may not have. */
  readonly isTheirs: boolean;
}

/** Codes of a failed job that say nothing of the file. */
const theirs = new Set(['pds_upload_failure', 'generic_failure']);

/** The service has answered with the status in a member and without one: both are taken. */
export const jobOf = (data: Members): Job => {
  const status = membersOf(data.jobStatus) ?? data;
  const isTheirs = theirs.has(textIn(status, 'failureCode') ?? textIn(status, 'error') ?? '');
  const said = textIn(status, 'message') ?? textIn(status, 'error') ?? textIn(status, 'failureCode');
  return {
    jobId: textIn(status, 'jobId'),
    state: textIn(status, 'state') ?? '',
    blob: blobOf(status.blob),
    said,
    isTheirs,
  };
};

export const subjectOf = ({ account, targetId }: PublishRequest): NetworkCall['subject'] => ({
  accountId: account.id,
  targetId,
});

/** Seconds for which a service takes our word that the account's server sent us. */
const authSeconds = 1_800;

/** A token of the account's own server, for one method of one service. */
export const serviceToken = async (
  { http, secret, request, steps, now }: Uploading,
  audience: string,
  method: string,
): Promise<{ readonly token: string } | Failed> => {
  const exp = String(Math.floor(now() / 1_000) + authSeconds);
  const result = await xrpc(
    http,
    {
      ...{ service: secret.service, nsid: 'com.atproto.server.getServiceAuth', token: secret.token },
      params: { aud: audience, lxm: method, exp },
      ...{ subject: subjectOf(request), isSecret: true },
    },
    steps.signal,
  );
  // A long upload outlives the access token, which the next attempt renews.
  if (hasEnded(result)) return { kind: 'deferred', failure: notReached('the session ended during the upload') };
  if (result.kind !== 'ok') return outcomeOf(result, false, now());
  const token = textIn(result.data, 'token');
  return token === null ? { kind: 'deferred', failure: mediaFailure(null, 'the answer has no token') } : { token };
};

/** The service's own name, for tokens that are for its methods. */
export const serviceDid = ({ videoService }: VideoOptions): string => `did:web:${new URL(videoService).hostname}`;

/** With it the service writes the finished video into the account's repository. */
const uploadMethod = 'com.atproto.repo.uploadBlob';

/** The token of an upload: the service takes that for the account's server (docs.bsky.app, "Video"). */
export const uploadToken = (uploading: Uploading) =>
  serviceToken(uploading, `did:web:${new URL(uploading.secret.service).hostname}`, uploadMethod);

/** The service takes no such token: it said so before it looked at anything else. */
const isTokenRefused = (result: XrpcResult): boolean => result.kind === 'refused' && result.status === 401;

/** Milliseconds that a token must have left for a call, and for the last one: with that, the service uploads in its turn. */
const shortLeftMs = 60_000;
const longLeftMs = 1_200_000;

type Ask = Pick<XrpcAsk, 'nsid' | 'params' | 'input' | 'onSent'>;

/**
 * Calls of one upload in parts. The official client sends the token of an upload with each of them (bluesky-social/social-app,
 * "multipart/upload.ts", August 2026); the lexicons give each method a permission of its own as well
 * (app.bsky.authCreatePosts), so a service that refuses the one gets the other, where the consent has it.
 */
export const partCalls = (uploading: Uploading, options: VideoOptions) => {
  const { http, request, steps, now } = uploading;
  const service = options.videoService;
  const tokens = new Map<string, { readonly token: string; readonly until: number }>();
  /** The service took a token for the method where it refused that of an upload. */
  let wantsOwn = false;
  const tokenFor = async (method: string, leftMs: number): Promise<{ readonly token: string } | Failed> => {
    const kept = tokens.get(method);
    if (kept !== undefined && kept.until - now() >= leftMs) return kept;
    const until = now() + authSeconds * 1_000;
    const made =
      method === uploadMethod
        ? await uploadToken(uploading)
        : await serviceToken(uploading, serviceDid(options), method);
    if ('token' in made) tokens.set(method, { ...made, until });
    return made;
  };
  const send = async (ask: Ask, method: string, leftMs: number): Promise<XrpcResult | Failed> => {
    const auth = await tokenFor(method, leftMs);
    steps.signal.throwIfAborted();
    if ('kind' in auth) return auth;
    const result = await xrpc(http, { ...ask, service, token: auth.token, subject: subjectOf(request) }, steps.signal);
    steps.signal.throwIfAborted();
    return result;
  };
  /** @param isLast the service keeps the token of this call, and needs that of an upload */
  return async (ask: Ask, isLast = false): Promise<XrpcResult | Failed> => {
    const leftMs = isLast ? longLeftMs : shortLeftMs;
    if (wantsOwn && !isLast) return send(ask, ask.nsid, leftMs);
    const result = await send(ask, uploadMethod, leftMs);
    if ('failure' in result || !isTokenRefused(result)) return result;
    const own = await send(ask, ask.nsid, leftMs);
    // Without the permission it stays with what the service said of the other token.
    if ('failure' in own) return own.kind === 'failed' ? result : own;
    wantsOwn = !isTokenRefused(own);
    return own;
  };
};

export type PartCalls = ReturnType<typeof partCalls>;
