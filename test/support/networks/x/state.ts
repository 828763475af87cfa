import { randomBytes } from 'node:crypto';
import type { Answer } from './answer.ts';

/** What the simulated X has: people, consents, posts, uploads, calls. */

export interface Person {
  readonly id: string;
  readonly username: string;
  readonly tier: 'self_serve' | 'enterprise';
  readonly subscription: 'None' | 'Premium';
}

export interface Access {
  readonly personId: string;
  readonly scopes: readonly string[];
  /** Milliseconds of the network's clock. */
  readonly until: number;
}

export interface Post {
  readonly id: string;
  readonly personId: string;
  /** As it was sent. */
  readonly sent: string;
  /** As it is shown: links are short, and three characters are escaped. */
  readonly text: string;
  readonly urls: readonly { readonly url: string; readonly expanded_url: string; readonly media_key?: string }[];
  readonly parent: string | null;
  readonly quoted: string | null;
  readonly mediaKeys: readonly string[];
  readonly body: Readonly<Record<string, unknown>>;
  readonly at: number;
}

export interface MediaUpload {
  readonly id: string;
  readonly key: string;
  readonly personId: string;
  readonly type: string;
  readonly category: string;
  readonly totalBytes: number;
  /** Bytes of each segment, by its index. */
  readonly segments: Map<number, number>;
  /** Bytes received, repeats included. */
  received: number;
  until: number;
  isFinalized: boolean;
  /** States still to be shown, one a poll. */
  processing: Processing[];
  isReady: boolean;
  altText: string | null;
}

export interface Processing {
  readonly state: 'pending' | 'in_progress' | 'succeeded' | 'failed';
  readonly check_after_secs?: number;
  readonly progress_percent?: number;
  readonly error?: { readonly code: number; readonly name: string; readonly message: string };
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
  readonly status: number;
}

/** What a call meets instead of the network's own answer. */
export interface Fault {
  /** `POST /2/tweets`; the path's ids are written `:id`. */
  readonly route: string;
  /** The call's address or body has this; absent: each call. */
  readonly says?: string;
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

export interface Limits {
  /** Calls of one person in 15 minutes, by route. */
  readonly person: Readonly<Record<string, number>>;
  /** Creates in 24 hours: of one person, and of the app. */
  readonly personDay: number;
  readonly appDay: number;
}

const defaultLimits: Limits = {
  person: {
    'POST /2/tweets': 100,
    'DELETE /2/tweets/:id': 50,
    'GET /2/tweets': 5_000,
    'GET /2/users/me': 75,
    'GET /2/users/:id/tweets': 900,
    'POST /2/media/upload': 500,
    'GET /2/media/upload': 1_000,
    'POST /2/media/metadata': 500,
    'POST /2/media/upload/initialize': 1_875,
    'POST /2/media/upload/:id/append': 1_875,
    'POST /2/media/upload/:id/finalize': 1_875,
  },
  personDay: 10_000,
  appDay: 10_000,
};

export interface XNetworkOptions {
  readonly limits?: Partial<Limits>;
  readonly fieldsName?: 'tweet.fields' | 'post.fields';
  /** What a video goes through after it is finalized. */
  readonly processing?: readonly Processing[];
  /** Null: the app is a public client. */
  readonly clientSecret?: string | null;
  /** The Callback URI of the app. */
  readonly redirectUri?: string;
  /** What the permissions of the app allow to ask for; absent: everything. */
  readonly appScopes?: readonly string[];
  /** The authorize page is a page for browsers: whoever is not signed in gets it whatever they ask for. */
  readonly hidesFromStrangers?: boolean;
}

export const videoProcessing: readonly Processing[] = [
  { state: 'pending', check_after_secs: 1 },
  { state: 'in_progress', check_after_secs: 5, progress_percent: 42 },
  { state: 'succeeded', progress_percent: 100 },
];

export class State {
  readonly app: {
    readonly clientId: string;
    readonly clientSecret: string | null;
    readonly redirectUri: string;
    readonly scopes: readonly string[] | null;
  };
  readonly hidesFromStrangers: boolean;
  readonly fieldsName: 'tweet.fields' | 'post.fields';
  readonly limits: Limits;
  processing: readonly Processing[];
  readonly people = new Map<string, Person>();
  readonly access = new Map<string, Access>();
  /** Refresh tokens that still work. */
  readonly refresh = new Map<string, Omit<Access, 'until'>>();
  readonly codes = new Map<string, Omit<Access, 'until'> & { readonly challenge: string; readonly until: number }>();
  readonly posts: Post[] = [];
  readonly deleted = new Set<string>();
  readonly uploads = new Map<string, MediaUpload>();
  readonly creates: CreateEntry[] = [];
  readonly calls: CallEntry[] = [];
  readonly faults: (Fault & { left: number })[] = [];
  readonly counts = new Map<string, { used: number; reset: number }>();
  /** The app has no credit left. */
  isUnpaid = false;
  /** A refresh gives no new refresh token. */
  keepsRefresh = false;
  #ahead = 0;
  #next = 0n;

  constructor({ limits, fieldsName, processing, clientSecret = 'app:secret', ...app }: XNetworkOptions) {
    const { redirectUri = 'https://postline.test/connect/x', appScopes: scopes = null } = app;
    this.app = { clientId: 'app-id', clientSecret, redirectUri, scopes };
    this.hidesFromStrangers = app.hidesFromStrangers ?? false;
    this.fieldsName = fieldsName ?? 'tweet.fields';
    this.processing = processing ?? videoProcessing;
    this.limits = { ...defaultLimits, ...limits };
  }

  now(): number {
    return Date.now() + this.#ahead;
  }

  advance(ms: number): void {
    this.#ahead += ms;
  }

  id(): string {
    this.#next += 1n;
    return String(1_968_000_000_000_000_000n + this.#next);
  }

  token(kind: string): string {
    return `${kind}-${randomBytes(24).toString('base64url')}`;
  }

  grant(personId: string, scopes: readonly string[]) {
    const accessToken = this.token('access');
    this.access.set(accessToken, { personId, scopes, until: this.now() + 7_200_000 });
    const refreshToken = scopes.includes('offline.access') ? this.token('refresh') : null;
    if (refreshToken !== null) this.refresh.set(refreshToken, { personId, scopes });
    return { accessToken, refreshToken };
  }

  post(id: string): Post | null {
    return this.deleted.has(id) ? null : (this.posts.find((one) => one.id === id) ?? null);
  }

  /** The fault that this call meets; it is spent. */
  met(route: string, said: string): Fault['then'] | null {
    const fault = this.faults.find(
      (one) => one.left > 0 && one.route === route && (one.says === undefined || said.includes(one.says)),
    );
    if (fault === undefined) return null;
    fault.left -= 1;
    return fault.then;
  }
}
