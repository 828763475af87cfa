import { randomBytes } from 'node:crypto';
import type { Answer } from './answer.ts';
import type { LittleText } from './little.ts';

/** What the simulated LinkedIn has: members, organizations, consents, posts, comments, files, calls. */

export interface Person {
  readonly id: string;
  readonly name: string;
  /** Roles in organizations, by the number of the organization. */
  readonly roles: Map<string, readonly string[]>;
  followers: number;
}

export interface Organization {
  /** The number. */
  readonly id: string;
  readonly name: string;
  readonly vanityName: string;
  followers: number;
}

export interface Access {
  readonly personId: string;
  readonly scopes: readonly string[];
  /** Milliseconds of the network's clock. */
  readonly until: number;
}

export interface Post {
  /** `urn:li:share:…`. */
  readonly id: string;
  readonly author: string;
  /** As it was sent. */
  readonly body: Readonly<Record<string, unknown>>;
  readonly text: LittleText;
  readonly visibility: string;
  readonly content: Readonly<Record<string, unknown>> | null;
  readonly at: number;
}

export interface Comment {
  /** `urn:li:comment:(…,…)`. */
  readonly id: string;
  readonly post: string;
  readonly actor: string;
  readonly text: string;
  readonly tag: string | null;
}

export type FileKind = 'image' | 'video' | 'document';
export type FileStatus = 'WAITING_UPLOAD' | 'PROCESSING' | 'AVAILABLE' | 'PROCESSING_FAILED';

interface FilePart {
  readonly key: string;
  readonly first: number;
  readonly last: number;
  tag: string | null;
}

export interface File {
  /** `urn:li:image:…`. */
  readonly id: string;
  readonly kind: FileKind;
  readonly owner: string;
  /** Null: the call names none. */
  readonly bytes: number | null;
  readonly token: string;
  readonly parts: readonly FilePart[];
  /** Milliseconds of the network's clock, until which the addresses take bytes. */
  until: number;
  status: FileStatus;
  /** States still to be shown, one a question. */
  readonly states: FileStatus[];
  received: number;
  type: string | null;
}

/** A call that asked for a post. */
export interface CreateEntry {
  readonly personId: string | null;
  /** Header `x-test-tag` of the call. */
  readonly tag: string | null;
  readonly body: unknown;
  readonly status: number;
  readonly postId: string | null;
}

export interface CallEntry {
  readonly method: string;
  readonly path: string;
  readonly query: string;
  readonly personId: string | null;
  readonly version: string | null;
  readonly status: number;
}

/** What a call meets instead of the network's own answer. */
export interface Fault {
  /** `POST /rest/posts`; an URN in the path is written `:id`. */
  readonly route: string;
  /** The call's address or body has this; absent: each call. */
  readonly says?: string;
  /** Calls with a token of this member; absent: of each. */
  readonly personId?: string;
  /** Default 1. */
  readonly times?: number;
  readonly then:
    | { readonly answer: Answer }
    /** Not taken, and no answer (`silent`) or a closed connection (`drop`). */
    | 'silent_before'
    | 'drop_before'
    /** Taken, and then so. */
    | 'silent_after'
    | 'drop_after'
    | { readonly answerAfter: Answer }
    /** Answered so at once, and taken later. */
    | { readonly lateMs: number; readonly answer: Answer }
    /** `run` is called, and then so: `act` is the network's own answer; with `silent_after` it is called once it is taken. */
    | { readonly run: () => void; readonly then: 'act' | 'silent_before' | 'silent_after' };
}

export interface LinkedInOptions {
  /** The app is of a programme: a consent gives a refresh token. Default true. */
  readonly givesRefresh?: boolean;
  /** What a file goes through after its bytes are there; by default a video is looked at twice. */
  readonly processing?: Readonly<Partial<Record<FileKind, readonly FileStatus[]>>>;
  readonly redirectUri?: string;
  /** Permissions of the app's products; absent: all. */
  readonly appScopes?: readonly string[];
  /** Members may ask for the state of their own files. Default true. */
  readonly showsFiles?: boolean;
  /** Bytes of a part of a video. */
  readonly partBytes?: number;
}

const minuteMs = 60_000;
const dayMs = 86_400_000;

export class State {
  readonly app: { readonly clientId: string; readonly clientSecret: string; readonly redirectUri: string };
  readonly scopes: readonly string[] | null;
  readonly givesRefresh: boolean;
  readonly showsFiles: boolean;
  readonly partBytes: number;
  processing: Readonly<Record<FileKind, readonly FileStatus[]>>;
  /** Those that are active. */
  versions: readonly string[] = ['202607', '202608'];
  readonly people = new Map<string, Person>();
  readonly organizations = new Map<string, Organization>();
  readonly access = new Map<string, Access>();
  /** Access tokens that were revoked. */
  readonly ended = new Set<string>();
  /** Refresh tokens that still work; `until` is that of the consent. */
  readonly refresh = new Map<string, Access>();
  readonly codes = new Map<string, Access>();
  readonly posts: Post[] = [];
  readonly deleted = new Set<string>();
  readonly comments: Comment[] = [];
  readonly files = new Map<string, File>();
  readonly creates: CreateEntry[] = [];
  readonly calls: CallEntry[] = [];
  readonly faults: (Fault & { left: number })[] = [];
  /** Metrics of member posts that this version does not know. */
  readonly unknownMetrics = new Set<string>();
  /** Milliseconds in which a new post is not known to the comments. */
  commentLagMs = 0;
  #ahead = 0;
  #next = 0n;

  constructor({ processing, givesRefresh = true, showsFiles = true, ...options }: LinkedInOptions) {
    const { redirectUri = 'https://postline.test/connect/callback', appScopes = null } = options;
    this.app = { clientId: '86app', clientSecret: 'WPL_AP1.secret/=', redirectUri };
    this.scopes = appScopes;
    this.givesRefresh = givesRefresh;
    this.showsFiles = showsFiles;
    this.partBytes = options.partBytes ?? 4 * 1024 * 1024;
    this.processing = {
      ...{ image: ['AVAILABLE'], document: ['AVAILABLE'], video: ['PROCESSING', 'AVAILABLE'] },
      ...processing,
    };
  }

  now(): number {
    return Date.now() + this.#ahead;
  }

  advance(ms: number): void {
    this.#ahead += ms;
  }

  id(): string {
    this.#next += 1n;
    return String(7_240_000_000_000_000_000n + this.#next);
  }

  token(kind: string): string {
    return `${kind}-${randomBytes(24).toString('base64url')}`;
  }

  /** @param consentUntil where a refresh goes on with a consent; absent: a new consent of a year */
  grant(personId: string, scopes: readonly string[], consentUntil = this.now() + 365 * dayMs) {
    const accessToken = this.token('access');
    this.access.set(accessToken, { personId, scopes, until: this.now() + 60 * dayMs });
    const refreshToken = this.givesRefresh ? this.token('refresh') : null;
    if (refreshToken !== null) this.refresh.set(refreshToken, { personId, scopes, until: consentUntil });
    return { accessToken, refreshToken };
  }

  code(personId: string, scopes: readonly string[]): string {
    const code = this.token('code');
    this.codes.set(code, { personId, scopes, until: this.now() + 30 * minuteMs });
    return code;
  }

  post(id: string): Post | null {
    return this.deleted.has(id) ? null : (this.posts.find((one) => one.id === id) ?? null);
  }

  /** The roles of a member in the organization that an URN names. */
  rolesOf(personId: string, urn: string): readonly string[] {
    return this.people.get(personId)?.roles.get(urn.split(':').at(-1) ?? '') ?? [];
  }

  /** The fault that this call meets; it is spent. */
  met(route: string, said: string, personId: string | null): Fault['then'] | null {
    const fault = this.faults.find(
      (one) =>
        one.left > 0 &&
        one.route === route &&
        (one.says === undefined || said.includes(one.says)) &&
        (one.personId === undefined || one.personId === personId),
    );
    if (fault === undefined) return null;
    fault.left -= 1;
    return fault.then;
  }
}
