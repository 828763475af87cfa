/**
 * Uploads of videos in parts, from their lexicons (app.bsky.video.startUpload, uploadPart, finishUpload, getUploadStatus,
 * abortUpload): what a call sends and what it is answered is held against them, and so are the names of errors.
 */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import type { IncomingMessage } from 'node:http';

/** Of `@atproto/api`, whose own types take the compiler as long as the whole house. */
interface Lexicons {
  getDefOrThrow(nsid: string): {
    readonly type: string;
    readonly errors?: readonly { readonly name: string }[];
  };
  assertValidXrpcParams(nsid: string, value: unknown): unknown;
  assertValidXrpcInput(nsid: string, value: unknown): unknown;
  assertValidXrpcOutput(nsid: string, value: unknown): unknown;
}
const library: string = '@atproto/api';
const { lexicons, jsonToLex } = (await import(library)) as {
  readonly lexicons: Lexicons;
  readonly jsonToLex: (json: unknown) => unknown;
};

const hourMs = 3_600_000;

export interface Answer {
  readonly status: number;
  readonly body: unknown;
}

/** What the service does with the whole file. */
export interface MadeJob {
  readonly jobId: string;
  readonly jobStatus: Record<string, unknown>;
}

interface Upload {
  readonly did: string;
  readonly jobId: string;
  readonly sizeBytes: number;
  readonly partSizeBytes: number;
  readonly partCount: number;
  readonly parts: Map<number, Buffer>;
  expiresAt: number;
  state: 'created' | 'finishing' | 'completed' | 'failed' | 'aborted';
  /** Questions that are answered with `finishing` before the file is whole. */
  asks: number;
  auth: string;
  made: MadeJob | null;
  failureReason: string;
}

/** One call that the service got, in the order of their arrival. */
export interface UploadCall {
  readonly method: string;
  readonly jobId: string | null;
  readonly partNumber: number | null;
  readonly bytes: number;
  /** Method for which the token was given. */
  readonly tokenFor: string;
}

/** What a call meets once. `isCarriedOut`: it did its work before. `isSilent`: the connection ends instead of an answer. */
export interface UploadFault {
  readonly method: string;
  readonly partNumber?: number;
  readonly status?: number;
  readonly error?: string;
  readonly isCarriedOut?: true;
  readonly isSilent?: true;
}

const refused = (error: string, message = error, status = 400): Answer => ({ status, body: { error, message } });

const claimsOf = (auth: string): Record<string, unknown> => {
  const claims = auth.replace(/^Bearer /, '').split('.')[1] ?? '';
  return JSON.parse(Buffer.from(claims, 'base64url').toString() || '{}') as Record<string, unknown>;
};

const bodyOf = async (message: IncomingMessage): Promise<Buffer> => {
  const chunks: Buffer[] = [];
  for await (const chunk of message) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
};

export class BlueskyUploads {
  /** False: a service of before August 2026. */
  isOffered = true;
  /** The service takes tokens for its own methods, and that of an upload for the last call alone, with which it uploads. */
  wantsOwnTokens = false;
  partSizeBytes = 65_536;
  maxOpen = 5;
  /** Questions for which a file is put together. */
  finishAsks = 0;
  /** The next file cannot be put together, for this reason. */
  failNext: string | null = null;
  /** What the plan of the next upload says wrongly. */
  planNext: Record<string, unknown> = {};
  readonly faults: UploadFault[] = [];
  readonly calls: UploadCall[] = [];
  readonly uploads = new Map<string, Upload>();
  readonly #make: (did: string, auth: string, bytes: Buffer) => MadeJob;
  readonly #now: () => number;

  constructor(make: (did: string, auth: string, bytes: Buffer) => MadeJob, now: () => number) {
    this.#make = make;
    this.#now = now;
  }

  /** Parts that came, by their number, each as often as it came. */
  partsSent(): readonly number[] {
    return this.calls.flatMap(({ partNumber }) => (partNumber === null ? [] : [partNumber]));
  }

  open(): readonly string[] {
    return [...this.uploads.values()].filter((one) => this.#stateOf(one) === 'created').map(({ jobId }) => jobId);
  }

  expireAll(): void {
    for (const one of this.uploads.values()) one.expiresAt = this.#now() - 1;
  }

  static isOne(nsid: string): boolean {
    return /^app\.bsky\.video\.(startUpload|uploadPart|finishUpload|getUploadStatus|abortUpload)$/.test(nsid);
  }

  /** @returns null: no answer comes */
  async answer(nsid: string, request: IncomingMessage, url: URL): Promise<Answer | null> {
    const body = await bodyOf(request);
    if (!this.isOffered) return refused('MethodNotImplemented', 'Method Not Implemented', 501);
    const method = nsid.replace('app.bsky.video.', '');
    const auth = request.headers.authorization ?? '';
    const { aud, lxm, iss, exp } = claimsOf(auth);
    const json =
      method === 'uploadPart' || body.length === 0 ? null : (JSON.parse(body.toString()) as { jobId?: string });
    const jobId = url.searchParams.get('jobId') ?? json?.jobId ?? null;
    const partNumber = url.searchParams.has('partNumber') ? Number(url.searchParams.get('partNumber')) : null;
    this.calls.push({ method, jobId, partNumber, bytes: body.length, tokenFor: String(lxm) });
    const isOwn = aud === 'did:web:127.0.0.1' && lxm === nsid;
    const isOfUpload = aud === 'did:web:localhost' && lxm === 'com.atproto.repo.uploadBlob';
    const isFresh = typeof exp === 'number' && exp * 1_000 > this.#now();
    const isMeant = this.wantsOwnTokens && method !== 'finishUpload' ? isOwn : isOfUpload;
    if (!isFresh || !isMeant) {
      return refused('AuthenticationRequired', `not for us: ${aud} ${lxm}`, 401);
    }
    const at = this.faults.findIndex(
      (one) => one.method === method && (one.partNumber === undefined || one.partNumber === partNumber),
    );
    const [fault] = at < 0 ? [] : this.faults.splice(at, 1);
    if (fault !== undefined && fault.isCarriedOut !== true) {
      return fault.isSilent === true
        ? null
        : refused(fault.error ?? 'ServiceOverloaded', undefined, fault.status ?? 400);
    }
    const said = this.#carryOut(nsid, String(iss), auth, request, url, body, json);
    if (said.status === 200) lexicons.assertValidXrpcOutput(nsid, jsonToLex(said.body));
    else this.#assertNamed(nsid, said.body as { error: string });
    if (fault === undefined) return said;
    return fault.isSilent === true ? null : refused(fault.error ?? '', undefined, fault.status ?? 500);
  }

  #assertNamed(nsid: string, { error }: { readonly error: string }): void {
    const names = (lexicons.getDefOrThrow(nsid).errors ?? []).map(({ name }) => name);
    assert.ok(error === 'InvalidRequest' || names.includes(error), `${nsid} has no error ${error}`);
  }

  #carryOut(
    nsid: string,
    did: string,
    auth: string,
    request: IncomingMessage,
    url: URL,
    body: Buffer,
    json: Record<string, unknown> | null,
  ): Answer {
    const isQuery = lexicons.getDefOrThrow(nsid).type === 'query';
    const isPart = nsid.endsWith('uploadPart');
    const type = request.headers['content-type'];
    const params = Object.fromEntries(url.searchParams) as Record<string, unknown>;
    if (isPart) params.partNumber = Number(params.partNumber);
    try {
      assert.equal(request.method, isQuery ? 'GET' : 'POST');
      if (isPart || isQuery) lexicons.assertValidXrpcParams(nsid, params);
      else assert.equal(url.search, '', 'a call without parameters');
      if (!isQuery) assert.equal(type, isPart ? 'application/octet-stream' : 'application/json');
      if (!isPart && !isQuery) lexicons.assertValidXrpcInput(nsid, json);
    } catch (error) {
      return refused('InvalidRequest', (error as Error).message);
    }
    if (nsid.endsWith('startUpload')) return this.#start(did, json ?? {});
    const upload = this.uploads.get(String(params.jobId ?? json?.jobId));
    if (upload === undefined || upload.did !== did) return refused('UploadNotFound');
    if (isPart) return this.#part(upload, Number(params.partNumber), body);
    if (nsid.endsWith('finishUpload')) return this.#finish(upload, auth);
    if (nsid.endsWith('abortUpload')) return this.#abort(upload);
    return this.#status(upload);
  }

  #start(did: string, { sizeBytes, mimeType }: Record<string, unknown>): Answer {
    if (mimeType !== 'video/mp4') return refused('UnsupportedContentType');
    if (Number(sizeBytes) > 300_000_000) return refused('VideoTooLarge');
    const open = [...this.uploads.values()].filter((one) => one.did === did && this.#stateOf(one) === 'created');
    if (open.length >= this.maxOpen) return refused('TooManyOpenUploads');
    const jobId = randomBytes(10).toString('hex');
    const { partSizeBytes } = this;
    const partCount = Math.ceil(Number(sizeBytes) / partSizeBytes);
    const plan = { jobId, sizeBytes: Number(sizeBytes), partSizeBytes, partCount };
    const expiresAt = this.#now() + hourMs;
    this.uploads.set(jobId, {
      ...{ ...plan, did, parts: new Map(), state: 'created', asks: this.finishAsks, auth: '', made: null },
      ...{ failureReason: '', expiresAt },
    });
    const { sizeBytes: _, ...shown } = plan;
    const body = { ...shown, expiresAt: new Date(expiresAt).toISOString(), ...this.planNext };
    this.planNext = {};
    return { status: 200, body };
  }

  #stateOf({ state, expiresAt }: Upload): Upload['state'] | 'expired' {
    return state === 'created' && expiresAt <= this.#now() ? 'expired' : state;
  }

  #part(upload: Upload, partNumber: number, body: Buffer): Answer {
    const state = this.#stateOf(upload);
    if (state === 'expired') return refused('UploadExpired');
    if (state === 'aborted') return refused('UploadAborted');
    if (state === 'failed') return refused('UploadFailed', upload.failureReason);
    if (state === 'completed') return refused('UploadAlreadyCompleted');
    if (state === 'finishing') return refused('UploadNotReady');
    if (partNumber > upload.partCount) return refused('InvalidPartNumber');
    const { partSizeBytes, sizeBytes, partCount } = upload;
    const expected = partNumber === partCount ? sizeBytes - (partCount - 1) * partSizeBytes : partSizeBytes;
    if (body.length !== expected) return refused('PartSizeMismatch', `${body.length} instead of ${expected}`);
    upload.parts.set(partNumber, body);
    return { status: 200, body: { partNumber, sizeBytes: body.length } };
  }

  #finish(upload: Upload, auth: string): Answer {
    const state = this.#stateOf(upload);
    if (state === 'expired') return refused('UploadExpired');
    if (state === 'aborted') return refused('UploadAborted');
    if (state === 'failed') return refused('UploadFailed', upload.failureReason);
    if (state === 'finishing') return refused('UploadNotReady');
    if (state === 'completed' && upload.made !== null) return { status: 200, body: this.#finished(upload.made) };
    const missing = Array.from({ length: upload.partCount }, (_, at) => at + 1).filter((one) => !upload.parts.has(one));
    if (missing.length > 0) return refused('MissingParts', missing.join(', '));
    upload.auth = auth;
    if (this.failNext !== null) {
      Object.assign(upload, { state: 'failed', failureReason: this.failNext });
      this.failNext = null;
      return refused('UploadFailed', upload.failureReason);
    }
    upload.state = 'finishing';
    if (upload.asks > 0) return refused('UploadNotReady');
    return { status: 200, body: this.#finished(this.#putTogether(upload)) };
  }

  #putTogether(upload: Upload): MadeJob {
    const parts = [...upload.parts].toSorted(([one], [other]) => one - other).map(([, bytes]) => bytes);
    const made = this.#make(upload.did, upload.auth, Buffer.concat(parts));
    Object.assign(upload, { state: 'completed', made });
    return made;
  }

  #finished = ({ jobId, jobStatus }: MadeJob) => ({ completedJobId: jobId, jobStatus });

  #abort(upload: Upload): Answer {
    const state = this.#stateOf(upload);
    if (state === 'finishing') return refused('UploadNotReady');
    if (state === 'created') upload.state = 'aborted';
    const { made, failureReason } = upload;
    const more = state === 'completed' ? { completedJobId: made?.jobId } : state === 'failed' ? { failureReason } : {};
    return { status: 200, body: { state: state === 'created' ? 'aborted' : state, ...more } };
  }

  #status(upload: Upload): Answer {
    if (upload.state === 'finishing') {
      if (upload.asks === 0) this.#putTogether(upload);
      else upload.asks -= 1;
    }
    const { jobId, partSizeBytes, partCount, parts, expiresAt, made, failureReason } = upload;
    const state = this.#stateOf(upload);
    return {
      status: 200,
      body: {
        ...{ jobId, partSizeBytes, partCount, receivedParts: [...parts.keys()].toSorted((a, b) => a - b), state },
        expiresAt: new Date(expiresAt).toISOString(),
        ...(state === 'completed' && made !== null ? this.#finished(made) : {}),
        ...(state === 'failed' ? { failureReason } : {}),
      },
    };
  }
}
