import { randomUUID } from 'node:crypto';
import type { FileSlice, NetworkCall } from '#contracts/ports/network-http.ts';
import type { Json } from '#contracts/ports/platform.ts';
import { nobody } from '../shared/findings.ts';
import { parsed, withoutSecrets } from '../shared/members.ts';
import { addressOf, type OwnPlace, placesOf } from './app.ts';
import { billed, type Cost, counted, exhaust } from './budget.ts';
import { type ErrorTables, judge, type NetworkAnswer, type NotOk, type RefusedAnswer, usualUntil } from './errors.ts';
import { exhausted, type LimitTables, usageOf, windowsOf } from './limits.ts';
import { proofOf } from './oauth.ts';
import { type OpenSession, refreshedSession, sessionOf } from './session.ts';
import { appName, type Kit, type MadeBy, type NetworkRequest, versionName } from './tables.ts';

/** The calls of a network. Integers beyond 2^53 arrive as strings. */

/** Stands in the JSON of a call for a file, which travels as a text of base64 and is read while it is sent. */
export class FileInJson {
  readonly slice: FileSlice;

  constructor(slice: Omit<FileSlice, 'as'>) {
    this.slice = { ...slice, as: 'base64' };
  }
}

export type JsonWithFiles = Json | FileInJson | readonly JsonWithFiles[] | { readonly [name: string]: JsonWithFiles };

export interface Ask extends NetworkRequest {
  /** Below the API: `/2/tweets`; below another address: `{uploads}/video`; or a whole address that the network named. */
  readonly path: string;
  readonly json?: JsonWithFiles;
  /** Of `application/x-www-form-urlencoded`. */
  readonly fields?: Readonly<Record<string, string>>;
  /** Of `multipart/form-data`; the file comes last. */
  readonly form?: {
    readonly fields: Readonly<Record<string, string>>;
    readonly file: FileSlice;
    readonly type: string;
    /** Of the field. */
    readonly name: string;
  };
  /** The body is this part of a file, or these bytes, of the type in `headers`. */
  readonly bytes?: FileSlice | Buffer;
  readonly onSent?: (bytes: number) => void;
  /** Default `Bearer` below an address of the app. `none`: without the headers of the API too, as any other address. */
  readonly scheme?: 'Bearer' | 'OAuth' | 'none';
  /** Statuses that are answers beside 2xx: 308 of an upload that goes on. */
  readonly takes?: readonly number[];
  /** What the network bills of it. */
  readonly cost?: Cost;
  /** Of what the app may do, it leaves some to posts: figures. */
  readonly isOptional?: true;
}

type Subject = NetworkCall['subject'];
type Body = Pick<NetworkCall, 'body'> & { readonly type: string | null };

const formOf = ({ fields, file, type, name }: NonNullable<Ask['form']>): Body => {
  const mark = `part-${randomUUID()}`;
  const part = (field: string, more: string) =>
    `--${mark}\r\ncontent-disposition: form-data; name="${field}"${more}\r\n\r\n`;
  const before = Object.entries(fields).map(([field, value]) => `${part(field, '')}${value}\r\n`);
  const head = part(name, `; filename="${name}"\r\ncontent-type: ${type}`);
  return {
    type: `multipart/form-data; boundary=${mark}`,
    body: [Buffer.from(`${before.join('')}${head}`), file, Buffer.from(`\r\n--${mark}--\r\n`)],
  };
};

const jsonOf = (json: JsonWithFiles): Body => {
  const files: FileSlice[] = [];
  // No text of a caller has it.
  const mark = `file-${randomUUID()}`;
  const text = JSON.stringify(json, (_name, value) => {
    if (!(value instanceof FileInJson)) return value;
    files.push(value.slice);
    return mark;
  });
  const pieces = text.split(mark).map((piece) => Buffer.from(piece));
  return {
    type: 'application/json',
    body: pieces.flatMap((piece, at) => [piece, ...files.slice(at, at + 1)]),
  };
};

const bodyOf = ({ json, form, fields, bytes }: Ask): Body => {
  if (form !== undefined) return formOf(form);
  if (bytes !== undefined) return { type: null, body: [bytes] };
  if (fields !== undefined) {
    const text = new URLSearchParams(fields).toString();
    return { type: 'application/x-www-form-urlencoded', body: [Buffer.from(text)] };
  }
  if (json === undefined) return { type: null, body: [] };
  return jsonOf(json);
};

/** `/:id/feed` against `/123/feed`. */
const fitsPath = (pattern: string, path: string): boolean => {
  const [wanted, given] = [pattern.toLowerCase().split('/'), path.split('/')];
  return wanted.length === given.length && wanted.every((one, at) => one.startsWith(':') || one === given[at]);
};

type Said = Pick<RefusedAnswer, 'status' | 'headers' | 'body'>;

/**
 * A server that the network named for a file knows no token, no limit and no error of the network: it may pass, and an
 * address that has ended is asked for anew.
 */
const ofOthers: ErrorTables & LimitTables = {
  errors: [
    { status: '5xx', means: 'down' },
    { status: 408, means: 'down' },
    { status: 413, means: 'media' },
    { means: 'later' },
  ],
  buckets: [],
  words: [],
  code: () => null,
};

/** Answers of 2xx with more of the app's limit used than this rest its reads, so that posts have what is left. */
const busyPercent = 80;
const busyMs = 300_000;

export class NetworkClient {
  readonly #kit: Kit;
  /** With these something was made: an attempt that asks for more has opened its boundary once. */
  readonly #used = new WeakSet<OpenSession>();

  constructor(kit: Kit) {
    this.#kit = kit;
  }

  /**
   * What a call that makes something visible needs before it: a token with minutes left, and an app that may call.
   * @param ask the call, where the network counts calls in units
   */
  async open(subject: Subject, signal: AbortSignal, ask: NetworkRequest | null = null): Promise<OpenSession | NotOk> {
    const open = await this.#open(subject, false, signal);
    // What gives it up makes no call: then one is counted that was none.
    return open.kind === 'open' ? ((await counted(this.#kit, false, ask)) ?? open) : open;
  }

  /** Makes nothing visible. Calls once more with a new token where the network refuses the first one. */
  async call(subject: Subject, ask: Ask, signal: AbortSignal): Promise<NetworkAnswer> {
    this.#refuse(ask, false);
    // Before what it costs is taken: an account without a token costs nothing, and neither does one that cannot be read.
    const open = await this.#open(subject, this.#isRead(ask), signal);
    if (open.kind !== 'open') return open;
    const spent = await this.#counted(ask);
    if (spent !== null) return spent;
    const asked = () => this.#renewing(open, subject, ask, signal);
    return ask.cost === undefined ? asked() : billed(this.#kit, ask.cost, asked);
  }

  /** The same with a token that no account has yet: of a login. */
  async callAs(token: string, ask: Ask, signal: AbortSignal): Promise<NetworkAnswer> {
    this.#refuse(ask, false);
    const spent = await this.#counted(ask);
    if (spent !== null) return spent;
    const asked = () => this.#send(token, nobody, ask, signal);
    return ask.cost === undefined ? asked() : billed(this.#kit, ask.cost, asked);
  }

  /**
   * The one call that makes something visible. It leaves before anything is awaited. A second call follows an answer alone
   * that says that the network did nothing, since the token had ended: it is the first that can have an effect.
   * @param open of one call: another one needs another
   */
  once(open: OpenSession, subject: Subject, ask: Omit<Ask, 'cost'>, signal: AbortSignal): Promise<NetworkAnswer> {
    this.#refuse(ask, true);
    if (this.#used.has(open)) throw new Error(`${this.#kit.tables.platform}: a second call of one boundary`);
    this.#used.add(open);
    return this.#renewing(open, subject, ask, signal);
  }

  async #open(subject: Subject, isRead: boolean, signal: AbortSignal): Promise<OpenSession | NotOk> {
    const { appLimits, clock } = this.#kit;
    const now = clock();
    const rest =
      (await appLimits.restOf(appName(this.#kit), isRead, now)) ??
      (await appLimits.restOf(versionName(this.#kit), isRead, now));
    return rest === null ? sessionOf(this.#kit, subject, signal) : { kind: 'resting', rest };
  }

  async #renewing(open: OpenSession, subject: Subject, ask: Ask, signal: AbortSignal): Promise<NetworkAnswer> {
    const first = await this.#send(open.token, subject, ask, signal);
    if (first.kind !== 'refused' || first.row.renews !== true) return first;
    const renewed = await refreshedSession(this.#kit, subject, open.version, signal);
    if (renewed.kind !== 'open') return renewed;
    if (signal.aborted) return { kind: 'unavailable', reason: 'the time was over when the token was new' };
    return this.#send(renewed.token, subject, ask, signal);
  }

  /** Files go to servers that count nothing. */
  async #counted(ask: Ask): Promise<NotOk | null> {
    const { path, isOptional } = ask;
    const isCounted = this.#kit.tables.units === undefined ? this.#isOfApi(path) : this.#placesOf(path).length > 0;
    return isCounted ? counted(this.#kit, isOptional === true, ask) : null;
  }

  #isOfApi(path: string): boolean {
    return this.#placesOf(path).some(({ name }) => name === 'api');
  }

  #isRead(ask: Ask): boolean {
    return this.#kit.tables.isRead?.(ask) ?? ask.method === 'GET';
  }

  #addressOf(path: string): string {
    return addressOf(this.#kit.app, path.startsWith('/') ? `{api}${path}` : path);
  }

  #placesOf(path: string): readonly OwnPlace[] {
    return placesOf(this.#kit.app, this.#addressOf(path));
  }

  #refuse(ask: Ask, isWanted: boolean): void {
    const places = this.#placesOf(ask.path);
    const fits = ({ method, path, when }: MadeBy): boolean =>
      method === ask.method &&
      (path === null || places.some((place) => fitsPath(path, place.path))) &&
      (when?.(ask) ?? true);
    const closed = this.#kit.tables.closed?.(ask) ?? null;
    if (closed !== null) throw new Error(`${this.#kit.tables.platform}: ${closed} is closed to this app`);
    if (this.#kit.tables.makes.some(fits) === isWanted) return;
    const why = isWanted ? 'is not in the table of calls that make something' : 'makes something visible';
    throw new Error(`${this.#kit.tables.platform}: ${ask.method} ${places[0]?.path ?? 'of another server'} ${why}`);
  }

  #headersOf(token: string, { path, scheme, headers }: Ask, type: string | null): Record<string, string> {
    const { tables, app } = this.#kit;
    const places = this.#placesOf(path);
    const how = places.length > 0 ? (scheme ?? 'Bearer') : 'none';
    const ours =
      how !== 'none' && this.#isOfApi(path)
        ? Object.entries(tables.headers).map(([name, value]) => [name, value.replace('{version}', app.version ?? '')])
        : [];
    return {
      ...Object.fromEntries(ours),
      ...(how === 'none' ? {} : { authorization: `${how} ${token}` }),
      ...(type === null ? {} : { 'content-type': type }),
      ...headers,
    };
  }

  #proofOf(token: string, { path, scheme }: Ask): Readonly<Record<string, string>> {
    const { tables, app } = this.#kit;
    const proof = scheme === 'none' || !this.#isOfApi(path) ? null : proofOf(token, app.secret);
    return tables.proof === undefined || proof === null ? {} : { [tables.proof]: proof };
  }

  async #send(token: string, subject: Subject, ask: Ask, signal: AbortSignal): Promise<NetworkAnswer> {
    const { http, tables } = this.#kit;
    const { type, body } = bodyOf(ask);
    const query = new URLSearchParams({ ...ask.query, ...this.#proofOf(token, ask) }).toString();
    const result = await http.send(
      {
        ...{ method: ask.method, url: `${this.#addressOf(ask.path)}${query === '' ? '' : `?${query}`}` },
        headers: this.#headersOf(token, ask, type),
        ...{ body, subject },
        ...(ask.onSent === undefined ? {} : { onSent: ask.onSent }),
      },
      signal,
    );
    if (result.kind !== 'answered') return result;
    const { status, headers } = result;
    // Networks repeat a token in their errors and in the addresses of their pages, and both are kept.
    const said = parsed(withoutSecrets(result.body, [token]));
    const isGood = (status >= 200 && status < 300) || ask.takes?.includes(status) === true;
    // A proxy on the way answers in its own words, and an answer may be cut: neither says that there is nothing.
    if (isGood && said === null && ask.method === 'GET')
      return { kind: 'silent', reason: 'the answer is no JSON object' };
    const isOwn = this.#placesOf(ask.path).length > 0;
    if (isGood && (said === null || tables.isRefusal?.(said) !== true)) {
      // The answer may say that a post is out: a rest that cannot be kept takes nothing of that away, and the next one says it too.
      if (isOwn) await this.#noteUsage(headers).catch(() => undefined);
      // Networks answer an upload with an empty body.
      return { kind: 'ok', status, headers, body: said ?? {} };
    }
    if (status >= 300 && status < 400) return { kind: 'silent', reason: `unexpected status ${status}` };
    const answer = { status, headers, body: said };
    return isOwn ? this.#refused(answer, ask) : refusedOf({ ...this.#kit, tables: ofOthers }, answer);
  }

  async #refused(answer: Said, ask: Ask): Promise<RefusedAnswer> {
    const { tables, clock, appLimits } = this.#kit;
    const ofRead = this.#isRead(ask);
    const refused = refusedOf(this.#kit, answer);
    const { row, failure, headers } = refused;
    if (row.exhausts === true) await exhaust(this.#kit, ask);
    const now = clock();
    const isClosed = row.means === 'unpaid' || row.means === 'sunset';
    const { until, ofApp } = exhausted(tables, headers, now, usualUntil(row, now));
    const rests = isClosed || (row.means === 'limited' && (row.ofApp === true || ofApp));
    if (!rests) return refused;
    const name = row.means === 'sunset' ? versionName(this.#kit) : appName(this.#kit);
    await appLimits.rest(name, ofRead && !isClosed ? 'reads' : 'all', {
      until: isClosed ? refused.named : until,
      failure: { ...failure, actor: 'service' },
    });
    return refused;
  }

  async #noteUsage(headers: RefusedAnswer['headers']): Promise<void> {
    const { tables, clock, appLimits } = this.#kit;
    if (tables.usage === undefined || usageOf(tables.usage, headers).appPercent < busyPercent) return;
    const row = { means: 'limited', ofApp: true } as const;
    const { failure } = judge({ ...tables, errors: [row] }, { status: 429, body: null });
    await appLimits.rest(appName(this.#kit), 'reads', { until: clock() + busyMs, failure });
  }

  /** Tells what an answer to a call that makes a post says of the account's limits. */
  tellLimits({ accountId }: Subject, answer: NetworkAnswer): void {
    const { tables, onLimits, clock } = this.#kit;
    if (!('headers' in answer)) return;
    const windows = windowsOf(tables.buckets, answer.headers, clock());
    if (windows.length > 0) onLimits?.(accountId, windows);
  }
}

/** What a refusal means by the tables of the network. */
export const refusedOf = (
  { tables, clock }: Pick<Kit, 'clock'> & { readonly tables: ErrorTables & LimitTables },
  said: Said,
): RefusedAnswer => {
  const now = clock();
  const judged = judge(tables, said);
  const usual = usualUntil(judged.row, now);
  const named = judged.row.means === 'limited' ? exhausted(tables, said.headers, now, usual).named : usual;
  return { kind: 'refused', ...said, ...judged, named };
};
