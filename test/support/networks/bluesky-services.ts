/**
 * The two services beside the server of repositories, from their lexicons (app.bsky.video.*, app.bsky.feed.getPosts,
 * app.bsky.actor.getProfile): the one that makes videos ready, and the one that counts. They ask the real server.
 */
import { createHash } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { BlueskyUploads, type MadeJob } from './bluesky-uploads.ts';
import type { Pds } from './pds.ts';

interface Job {
  readonly jobId: string;
  readonly did: string;
  readonly auth: string;
  readonly bytes: Buffer;
  state: number;
  blob: unknown;
  readonly failure: string | null;
}

/** A page of somebody else that posts link to. */
const pageHtml = `<!doctype html><title>Plain</title><meta property="og:title" content="Winter roast">
<meta property="og:description" content="Three farms, one cup."><meta property="og:image" content="/thumb.png">`;
const pixel = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
  'base64',
);

const states = ['CREATED', 'ENCODING', 'ENCODED', 'SCANNING', 'SCANNED', 'UPLOADING', 'UPLOADED', 'COMPLETED'];

export type ViewFault = 'nonsense' | 'down' | 'rate_limit' | 'token_death';

export interface BlueskyServices {
  readonly origin: string;
  /** Uploads of whole videos so far. */
  readonly uploads: () => number;
  /** Uploads in parts. */
  readonly parts: BlueskyUploads;
  /** The next job fails with this code. */
  failNext(code: string): void;
  /** The next upload is refused so. */
  refuseNext(status: number, body: unknown): void;
  /** What the service says of the account's uploads; null: it knows no such method. */
  limits: Record<string, unknown> | null;
  /** Strikes once, when the post is asked for. */
  readonly faults: Map<string, ViewFault>;
  /** Milliseconds by which the service's clock is ahead. */
  aheadMs: number;
  close(): void;
}

const bodyOf = async (message: IncomingMessage): Promise<Buffer> => {
  const chunks: Buffer[] = [];
  for await (const chunk of message) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
};

const claimsOf = (auth: string): Record<string, unknown> =>
  JSON.parse(Buffer.from(auth.split('.')[1] ?? '', 'base64url').toString() || '{}');

export const startBlueskyServices = async (pds: Pds): Promise<BlueskyServices> => {
  const jobs = new Map<string, Job>();
  const faults = new Map<string, ViewFault>();
  let uploads = 0;
  let failure: string | null = null;
  let refusal: { readonly status: number; readonly body: unknown } | null = null;
  const make = (did: string, auth: string, bytes: Buffer): MadeJob => {
    const jobId = createHash('sha256').update(did).update(bytes).digest('hex').slice(0, 20);
    const known = jobs.get(jobId);
    if (known !== undefined && known.failure === null) {
      const blob = known.blob ? { blob: known.blob } : {};
      return { jobId, jobStatus: { jobId, did, state: `JOB_STATE_${states[known.state]}`, ...blob } };
    }
    jobs.set(jobId, { jobId, did, auth, bytes, state: 0, blob: null, failure });
    failure = null;
    return { jobId, jobStatus: { jobId, did, state: 'JOB_STATE_CREATED' } };
  };
  const parts = new BlueskyUploads(make, () => Date.now() + it.aheadMs);
  const it = { aheadMs: 0, limits: { canUpload: true } as Record<string, unknown> | null };

  const say = (response: ServerResponse, status: number, body: unknown, headers: Record<string, string> = {}): void => {
    const date = new Date(Date.now() + it.aheadMs).toUTCString();
    response.writeHead(status, { 'content-type': 'application/json', date, ...headers }).end(JSON.stringify(body));
  };

  const upload = async (request: IncomingMessage, response: ServerResponse, url: URL): Promise<void> => {
    const bytes = await bodyOf(request);
    const auth = request.headers.authorization ?? '';
    const { aud, lxm, iss } = claimsOf(auth);
    const did = url.searchParams.get('did') ?? '';
    const isMeant = aud === 'did:web:localhost' && lxm === 'com.atproto.repo.uploadBlob' && iss === did;
    if (!isMeant) return say(response, 401, { error: 'AuthenticationRequired', message: `not for us: ${aud} ${lxm}` });
    if (request.headers['content-type'] !== 'video/mp4' || !url.searchParams.get('name')?.endsWith('.mp4')) {
      return say(response, 400, { error: 'InvalidRequest', message: 'send a video' });
    }
    if (refusal !== null) {
      const { status: code, body } = refusal;
      refusal = null;
      return say(response, code, body);
    }
    uploads += 1;
    const jobId = createHash('sha256').update(did).update(bytes).digest('hex').slice(0, 20);
    const known = jobs.get(jobId);
    if (known !== undefined && known.failure === null) {
      return say(response, 409, {
        error: 'already_exists',
        message: 'Video already processed',
        jobId,
        did,
        state: 'JOB_STATE_COMPLETED',
        ...(known.blob ? { blob: known.blob } : {}),
      });
    }
    jobs.set(jobId, { jobId, did, auth, bytes, state: 0, blob: null, failure });
    failure = null;
    say(response, 200, { jobId, did, state: 'JOB_STATE_CREATED' });
  };

  const status = async (response: ServerResponse, url: URL): Promise<void> => {
    const job = jobs.get(url.searchParams.get('jobId') ?? '');
    if (job === undefined) return say(response, 400, { error: 'InvalidRequest', message: 'no such job' });
    const { jobId, did } = job;
    if (job.failure !== null && job.state >= 2) {
      const failed = { jobId, did, state: 'JOB_STATE_FAILED', failureCode: job.failure, message: 'it went wrong' };
      return say(response, 200, { jobStatus: failed });
    }
    if (states[job.state] === 'UPLOADED' && job.blob === null) {
      const answer = await fetch(`${pds.service}/xrpc/com.atproto.repo.uploadBlob`, {
        method: 'POST',
        headers: { authorization: job.auth, 'content-type': 'video/mp4' },
        body: new Uint8Array(job.bytes),
      });
      const body = (await answer.json()) as { readonly blob?: unknown };
      if (!answer.ok) throw new Error(`the server refused the blob: ${JSON.stringify(body)}`);
      job.blob = body.blob;
    }
    say(response, 200, {
      jobStatus: {
        jobId,
        did,
        state: `JOB_STATE_${states[job.state]}`,
        ...(job.state === 7 ? { blob: job.blob } : {}),
      },
    });
    job.state = Math.min(job.state + 1, 7);
  };

  const limitsOf = (request: IncomingMessage, response: ServerResponse): void => {
    const { aud, lxm } = claimsOf(request.headers.authorization ?? '');
    const isMeant = aud === 'did:web:127.0.0.1' && lxm === 'app.bsky.video.getUploadLimits';
    if (!isMeant) say(response, 401, { error: 'AuthenticationRequired', message: `not for us: ${aud} ${lxm}` });
    else if (it.limits === null) say(response, 501, { error: 'MethodNotImplemented', message: 'no' });
    else say(response, 200, it.limits);
  };

  const viewOf = async (uri: string): Promise<Record<string, unknown> | null> => {
    const [repo = '', collection = '', rkey = ''] = uri.replace('at://', '').split('/');
    const record = await pds
      .call('com.atproto.repo.getRecord', { params: { repo, collection, rkey } })
      .catch((error: Error) => {
        if (error.message.includes('RecordNotFound')) return null;
        throw error;
      });
    if (record === null) return null;
    const counts = { replyCount: 2, repostCount: 4, likeCount: 31, quoteCount: 1, bookmarkCount: 3 };
    const author = { did: repo, handle: 'acme.test' };
    return { uri, cid: record.cid, author, record: record.value, ...counts, indexedAt: '2026-11-21T10:00:01.100Z' };
  };

  const posts = async (response: ServerResponse, url: URL): Promise<void> => {
    const uris = url.searchParams.getAll('uris');
    if (uris.length === 0 || uris.length > 25) {
      return say(response, 400, { error: 'InvalidRequest', message: 'Error: uris must have 1 to 25 elements' });
    }
    const struck = uris.find((uri) => faults.has(uri) && faults.get(uri) !== 'nonsense');
    const fault = struck === undefined ? undefined : faults.get(struck);
    if (struck !== undefined) faults.delete(struck);
    if (fault === 'down') return say(response, 502, { error: 'UpstreamFailure', message: 'down' });
    if (fault === 'token_death') return say(response, 401, { error: 'AuthMissing', message: 'no' });
    if (fault === 'rate_limit') {
      const reset = String(Math.ceil(Date.now() / 1_000) + 2);
      return say(response, 429, { error: 'RateLimitExceeded', message: 'slow down' }, { 'ratelimit-reset': reset });
    }
    const views = (await Promise.all(uris.map(viewOf))).filter((one) => one !== null);
    const spoiled = views.map((one) => {
      if (!faults.delete(String(one.uri))) return one;
      return { ...one, likeCount: -1, replyCount: 'many', repostCount: 1e308, quoteCount: -5, bookmarkCount: 'x' };
    });
    say(response, 200, { posts: spoiled });
  };

  const serve = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const url = new URL(request.url ?? '', 'http://localhost');
    if (url.pathname === '/page') {
      response.writeHead(200, { 'content-type': 'text/html; charset=utf-8' });
      response.end(pageHtml);
      return;
    }
    if (url.pathname === '/thumb.png') {
      response.writeHead(200, { 'content-type': 'image/png' }).end(pixel);
      return;
    }
    const nsid = url.pathname.replace('/xrpc/', '');
    if (BlueskyUploads.isOne(nsid)) {
      const said = await parts.answer(nsid, request, url);
      if (said === null) request.socket.destroy();
      else say(response, said.status, said.body);
      return;
    }
    if (nsid === 'app.bsky.video.uploadVideo') return upload(request, response, url);
    if (nsid === 'app.bsky.video.getJobStatus') return status(response, url);
    if (nsid === 'app.bsky.video.getUploadLimits') return limitsOf(request, response);
    if (nsid === 'app.bsky.feed.getPosts') return posts(response, url);
    if (nsid === 'app.bsky.actor.getProfile') {
      const did = url.searchParams.get('actor');
      return say(response, 200, {
        did,
        handle: 'acme.test',
        displayName: 'Acme',
        followersCount: 812,
        followsCount: 90,
        postsCount: 455,
      });
    }
    say(response, 501, { error: 'MethodNotImplemented', message: 'Method Not Implemented' });
  };
  const server = createServer((request, response) => {
    serve(request, response).catch((error: Error) =>
      say(response, 500, { error: 'InternalServerError', message: error.message }),
    );
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return Object.assign(it, {
    origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    uploads: () => uploads,
    parts,
    failNext: (code: string) => {
      failure = code;
    },
    refuseNext: (status: number, body: unknown) => {
      refusal = { status, body };
    },
    faults,
    close: () => {
      server.closeAllConnections();
      server.close();
    },
  });
};
