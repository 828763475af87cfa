import { randomUUID } from 'node:crypto';
import type { AppRefusal } from '#contracts/ports/app-limits.ts';
import type { FileSlice, NetworkCall } from '#contracts/ports/network-http.ts';
import type { Json } from '#contracts/ports/platform.ts';
import { type Members, parsed } from '../shared/members.ts';
import { failureOf, meaningOf, type Refused } from './errors.ts';
import { exhausted } from './limits.ts';
import { appOf, defaultApi, type XOptions } from './options.ts';
import { type Open, refreshed, sessionOf } from './session.ts';

export interface Ask {
  readonly method: 'GET' | 'POST' | 'DELETE';
  readonly path: string;
  readonly query?: Readonly<Record<string, string>>;
  readonly json?: Json;
  /** Of `multipart/form-data`; the file comes last. */
  readonly form?: {
    readonly fields: Readonly<Record<string, string>>;
    readonly file: FileSlice;
    readonly type: string;
  };
  readonly onSent?: (bytes: number) => void;
}

export type Answered =
  | { readonly kind: 'ok'; readonly body: Members; readonly headers: Readonly<Record<string, string>> }
  | Refused
  | { readonly kind: 'unsent'; readonly reason: string }
  | { readonly kind: 'silent'; readonly reason: string };

export type XResult =
  | Answered
  /** Only a new consent helps. */
  | { readonly kind: 'lapsed'; readonly reason: string }
  /** X did nothing: the token had ended and could not be refreshed in time. */
  | { readonly kind: 'unavailable'; readonly reason: string }
  /** There was no call: X refuses the whole app. */
  | { readonly kind: 'resting'; readonly rest: AppRefusal };

type Body = Pick<NetworkCall, 'body'> & { readonly type: string | null };

const formOf = ({ fields, file, type }: NonNullable<Ask['form']>): Body => {
  const mark = `part-${randomUUID()}`;
  const part = (name: string, more: string) =>
    `--${mark}\r\ncontent-disposition: form-data; name="${name}"${more}\r\n\r\n`;
  const before = Object.entries(fields).map(([name, value]) => `${part(name, '')}${value}\r\n`);
  const head = part('media', `; filename="media"\r\ncontent-type: ${type}`);
  return {
    type: `multipart/form-data; boundary=${mark}`,
    body: [Buffer.from(`${before.join('')}${head}`), file, Buffer.from(`\r\n--${mark}--\r\n`)],
  };
};

const bodyOf = ({ json, form }: Ask): Body => {
  if (form !== undefined) return formOf(form);
  if (json === undefined) return { type: null, body: [] };
  return { type: 'application/json', body: [Buffer.from(JSON.stringify(json))] };
};

/** Of posts and people: what X counts and bills. The state of an upload is not. */
const isRead = ({ method, path }: Ask): boolean => method === 'GET' && !path.startsWith('/2/media/');

const unpaidRestMs = 900_000;
const cappedRestMs = 3_600_000;

type FieldsName = NonNullable<XOptions['fieldsName']>;

const otherName: Readonly<Record<FieldsName, FieldsName>> = {
  'tweet.fields': 'post.fields',
  'post.fields': 'tweet.fields',
};

/** A refusal that names the parameter: X then has read nothing. */
const refusesName = (result: XResult, name: FieldsName): boolean =>
  result.kind === 'refused' && result.status === 400 && JSON.stringify(result.body ?? {}).includes(name);

export class XApi {
  readonly #options: XOptions;
  #fieldsName: FieldsName;

  constructor(options: XOptions) {
    this.#options = options;
    this.#fieldsName = options.fieldsName ?? 'tweet.fields';
  }

  /** What a call that writes needs before it: a token, and an app that may call. */
  open(subject: NetworkCall['subject'], signal: AbortSignal): Promise<Open | Exclude<XResult, Answered>> {
    return this.#open(subject, false, signal);
  }

  async #open(
    subject: NetworkCall['subject'],
    isRead: boolean,
    signal: AbortSignal,
  ): Promise<Open | Exclude<XResult, Answered>> {
    const { appLimits, clock } = this.#options;
    const rest = await appLimits.restOf(appOf(this.#options), isRead, clock());
    return rest === null ? sessionOf(this.#options, subject, signal) : { kind: 'resting', rest };
  }

  /** Calls, and once more with a new token when X refuses the first one. */
  async call(subject: NetworkCall['subject'], ask: Ask, signal: AbortSignal): Promise<XResult> {
    const open = await this.#open(subject, isRead(ask), signal);
    return open.kind === 'open' ? this.callWith(open, subject, ask, signal) : open;
  }

  /**
   * A call that names fields of posts. X's document and its guides name the parameter differently: where X refuses the one,
   * the other is tried once, and what X takes is remembered.
   */
  async callFor(
    subject: NetworkCall['subject'],
    ask: (fieldsName: FieldsName) => Ask,
    signal: AbortSignal,
  ): Promise<XResult> {
    const name = this.#fieldsName;
    const first = await this.call(subject, ask(name), signal);
    if (!refusesName(first, name)) return first;
    const other = otherName[name];
    const second = await this.call(subject, ask(other), signal);
    if (refusesName(second, other)) return first;
    this.#fieldsName = other;
    return second;
  }

  /**
   * The call leaves before anything is awaited. X answers 401 before it does anything, so a second call after it is the
   * first that can have an effect.
   */
  async callWith(open: Open, subject: NetworkCall['subject'], ask: Ask, signal: AbortSignal): Promise<XResult> {
    const first = await this.#once(open, subject, ask, signal);
    if (first.kind !== 'refused' || first.status !== 401) return first;
    const renewed = await refreshed(this.#options, subject, open.version, signal);
    if (renewed.kind !== 'open') return renewed;
    if (signal.aborted) return { kind: 'unavailable', reason: 'the time was over when the token was new' };
    return this.#once(renewed, subject, ask, signal);
  }

  async #once(open: Open, subject: NetworkCall['subject'], ask: Ask, signal: AbortSignal): Promise<Answered> {
    const { http, api = defaultApi } = this.#options;
    const { type, body } = bodyOf(ask);
    const query = ask.query === undefined ? '' : `?${new URLSearchParams(ask.query).toString()}`;
    const result = await http.send(
      {
        method: ask.method,
        url: `${api}${ask.path}${query}`,
        headers: {
          accept: 'application/json',
          authorization: `Bearer ${open.token}`,
          ...(type === null ? {} : { 'content-type': type }),
        },
        ...{ body, subject },
        ...(ask.onSent === undefined ? {} : { onSent: ask.onSent }),
      },
      signal,
    );
    if (result.kind !== 'answered') return result;
    const { status, headers } = result;
    const said = parsed(result.body);
    // X answers an append with an empty body.
    if (status >= 200 && status < 300) return { kind: 'ok', body: said ?? {}, headers };
    if (status < 400) return { kind: 'silent', reason: `unexpected status ${status}` };
    const refused: Refused = { kind: 'refused', status, headers, body: said };
    await this.#noteRefusal(refused, isRead(ask));
    return refused;
  }

  async #noteRefusal(refused: Refused, ofRead: boolean): Promise<void> {
    const { scope, category } = meaningOf(refused);
    const now = this.#options.clock();
    const isUnpaid = category === 'permission';
    const { until, isOfApp } = exhausted(refused.headers, now, now + (isUnpaid ? unpaidRestMs : cappedRestMs));
    if (scope === 'account' && !(category === 'rate_limited' && isOfApp)) return;
    const at = isUnpaid ? now + unpaidRestMs : until;
    const what = ofRead && !isUnpaid ? 'reads' : 'all';
    await this.#options.appLimits.rest(appOf(this.#options), what, {
      until: at,
      failure: { ...failureOf(refused), actor: 'service' },
    });
  }
}
