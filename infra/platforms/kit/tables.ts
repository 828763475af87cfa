import type { ApiVersion } from '#contracts/ports/api-version.ts';
import type { AppLimits } from '#contracts/ports/app-limits.ts';
import type { CredentialStore } from '#contracts/ports/credentials.ts';
import type { NetworkCall, NetworkHttp } from '#contracts/ports/network-http.ts';
import type { OnLimits } from '#contracts/ports/platform.ts';
import type { InsightsSource } from '#contracts/ports/platform-insights.ts';
import type { Platform } from '#schemas/common.ts';
import type { Members } from '../shared/members.ts';
import type { NetworkApp } from './app.ts';
import type { ErrorTables } from './errors.ts';
import type { LimitTables } from './limits.ts';
import type { OAuthTable } from './oauth.ts';

/** All that is data of a network with OAuth 2 and JSON over HTTP: its `tables.ts`. */

export type { ApiVersion };

const dayMs = 86_400_000;
const usualNights = [1, 2, 3, 4, 5, 7, 10, 14, 21, 28, 42, 60, 89];

/** Figures that a network has anew after a quarter of an hour. @param nights ages in days of the posts that a night asks for */
export const insightsBy = (insightsVersion: string, nights = usualNights): NetworkTables['insights'] => ({
  ...{ insightsVersion, minIntervalMs: 900_000, maxAheadMs: 300_000 },
  nightAgesMs: nights.map((days) => days * dayMs),
});

/** A call that makes something visible: `POST /:id/media_publish`, where `:id` stands for any name between slashes. */
export interface MadeBy {
  readonly method: NetworkCall['method'];
  /** Below an address of the app, without the address; null: any. */
  readonly path: string | null;
  /** Where the same path takes harmless calls too. Absent: each such call. */
  readonly when?: (call: NetworkRequest) => boolean;
}

/** What of a call decides whether it makes something visible. */
export interface NetworkRequest {
  readonly method: NetworkCall['method'];
  readonly path: string;
  readonly query?: Readonly<Record<string, string>>;
  readonly headers?: Readonly<Record<string, string>>;
  readonly json?: unknown;
  readonly fields?: Readonly<Record<string, string>>;
}

/** What the doctor needs to read the answers to a made-up code and to the page of consent. */
export interface DoctorTables {
  /** How an operator gets an app: `Make an app in X’s developer console`. */
  readonly makeApp: string;
  /** Where the operator sets it up, with an article. */
  readonly console: string;
  /** The network takes the client: it refuses the made-up code alone. */
  readonly refusesCode: RegExp;
  /** It does not take the client. */
  readonly refusesClient: RegExp;
  /** What to do where it does not, for a client with a secret and for one without. */
  readonly clientRemedy: { readonly confidential: string; readonly public: string };
  /** What the console calls the redirect address. */
  readonly redirectName: string;
  /** What to do where the app lacks a scope. */
  readonly scopesRemedy: string;
  /** How the page shows, to a person who is signed in, that it refuses the redirect address. */
  readonly redirectRefused: string;
  /** What nobody can ask the network, and every operator must know: of the page of consent. */
  readonly caution?: { readonly words: string; readonly remedy: string };
  /** Where the network calls us: what of the path lies behind its name, null for nothing, and what the console calls that address. */
  readonly calls?: readonly { readonly topic: string | null; readonly name: string }[];
}

export interface NetworkTables extends ErrorTables, LimitTables {
  readonly platform: Platform;
  /** The network whose app and whose page of consent it uses. Absent: its own. */
  readonly appOf?: Platform;
  /** Of every call below `{api}`; `{version}` is filled in. */
  readonly headers: Readonly<Record<string, string>>;
  /**
   * Name of the parameter in the query of each call below `{api}` that proves the app's secret behind the token. Absent: the
   * network asks for no such proof.
   */
  readonly proof?: string;
  /** @param set the version that the operator has set */
  version(set: string | null): ApiVersion;
  readonly oauth: OAuthTable;
  /** `call` of the client refuses these, and `once` refuses all others. */
  readonly makes: readonly MadeBy[];
  /** Which way of calling the network closed to our app, by its name; null: none. Neither `call` nor `once` makes such a call. */
  readonly closed?: (call: NetworkRequest) => string | null;
  /** Milliseconds that the boundary call may take, where a file is part of it. Default 10,000. */
  readonly boundaryDeadlineMs?: number;
  /** Whether a call reads what the network counts apart from posts. Default: each GET. */
  readonly isRead?: (call: NetworkRequest) => boolean;
  /**
   * Where the network counts calls in units: how many one takes of `appUnits` of the rules; `budget`: one of `appBudget`. Then
   * calls of every address of the app are counted. Absent: each call of the API takes one of `appBudget`.
   */
  readonly units?: (call: NetworkRequest) => number | 'budget';
  /** Whether a 2xx answer is a refusal all the same. Default: none is. */
  readonly isRefusal?: (body: Members) => boolean;
  readonly insights: Pick<InsightsSource, 'insightsVersion' | 'minIntervalMs' | 'maxAheadMs' | 'nightAgesMs'>;
  readonly doctor: DoctorTables;
}

export interface Tools {
  readonly http: NetworkHttp;
  readonly credentials: CredentialStore;
  /** Of the app: shared by everything that acts for it. */
  readonly appLimits: AppLimits;
  /** Milliseconds since the epoch. */
  readonly clock: () => number;
  /** Default: by the clock. Ends early when the signal aborts. */
  readonly pause?: (ms: number, signal: AbortSignal) => Promise<void>;
  /** Called with what the network says of an account's limits for posts. */
  readonly onLimits?: OnLimits;
  /** Milliseconds that the boundary call may take. Default: that of the network. */
  readonly boundaryDeadlineMs?: number;
}

/** What everything of one network works with. */
export interface Kit extends Tools {
  readonly tables: NetworkTables;
  readonly app: NetworkApp;
}

/** The app, as its limits are named. */
export const appName = ({ tables, app }: Pick<Kit, 'tables' | 'app'>): string => `${tables.platform}:${app.id}`;

/** The app with the version that it asks for: one that the network has ended does not rest a newer one. */
export const versionName = (kit: Pick<Kit, 'tables' | 'app'>): string => `${appName(kit)}@${kit.app.version ?? ''}`;
