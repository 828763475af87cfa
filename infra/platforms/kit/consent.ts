import type {
  ConnectedProfile,
  ConsentConnector,
  FinishedConsent,
  OfferedAccount,
  RefusedConnect,
} from '#contracts/ports/connector.ts';
import type { NewCredential } from '#contracts/ports/credentials.ts';
import { rulesOf } from '#domain/platforms/index.ts';
import type { Platform } from '#schemas/common.ts';
import { nobody } from '../shared/findings.ts';
import { type Members, textIn } from '../shared/members.ts';
import type { Ask, NetworkClient } from './client.ts';
import type { NetworkAnswer, NotOk } from './errors.ts';
import {
  authorizeUrl,
  besideOwn,
  exchangeCode,
  newVerifier,
  type OAuthTools,
  revokeTokens,
  type Tokens,
} from './oauth.ts';
import type { DoctorTables } from './tables.ts';

/** Connects accounts whose owner allows it on the network's own page. */

/** What the code gave, before anybody knows whose it is. */
export interface Login {
  /** Calls with the token of the login. */
  call(ask: Ask): Promise<NetworkAnswer>;
  readonly token: string;
  /** All that the answers to the code said. */
  readonly said: Members;
  /** ISO 8601, when the grant ends unless a refresh prolongs it; null: it does not end. */
  readonly endsAt: string | null;
  /** Permissions that the owner granted; those that were asked for where the network names none. */
  readonly scopes: readonly string[];
  /** Whose guest it is: a network may bill what is asked here. */
  readonly workspaceId: string;
}

/** An account of a login. */
export interface AccountOffer extends Pick<OfferedAccount, 'platform' | 'holder' | 'obstacle'> {
  readonly profile: Omit<ConnectedProfile, 'scopes' | 'consentEndsAt'>;
  /** Default: those of the login. */
  readonly scopes?: readonly string[];
  /** ISO 8601. Default null. */
  readonly consentEndsAt?: string | null;
  /** A token of its own, which a page has beside the login; `until`: ISO 8601, null: without an end. */
  readonly own?: { readonly token: string; readonly until: string | null };
  /** What else is kept beside the token, secret as it is. */
  readonly kept?: Members;
}

export interface OfferedLogin {
  readonly kind: 'offered';
  /** Whose login it is, as the network names it; null: nothing is shared, a login has one account. */
  readonly person: string | null;
  /** Where the network tells the granted permissions apart from the code. */
  readonly granted?: readonly string[];
  readonly accounts: readonly AccountOffer[];
  /** The login has more. Default false. */
  readonly isCut?: boolean;
}

/** Whose login it is, and what it may post to: pages, channels, organizations. */
export type OfferAccounts = (login: Login) => Promise<OfferedLogin | NotOk>;

const refused = (words: string, operator?: string): RefusedConnect => ({
  kind: 'refused',
  words,
  ...(operator === undefined ? {} : { operator }),
});

/** Errors of RFC 6749 that are about our app, not about the guest. */
const ofApp = ['unauthorized_client', 'invalid_client', 'invalid_scope', 'unsupported_response_type'];

interface Words {
  readonly later: string;
  readonly again: string;
  readonly unread: string;
  readonly none: string;
  missing(what: readonly string[]): string;
  refusesApp(error: string, reason: string): RefusedConnect;
}

const wordsOf = (name: string): Words => {
  const later = `${name} does not answer now. Try again in a few minutes.`;
  return {
    later,
    again: `${name} no longer takes this answer: it is valid for a short time. Start again.`,
    unread: `${name} does not let us read this account. Is it locked or suspended? Start again.`,
    none: `${name} shows no account of this login to which we could post. Start again with another one.`,
    missing: (what) => `${name} gave us no permission for ${what.join(', ')}. Start again.`,
    refusesApp: (error, reason) => refused(later, `${name} refuses our app: ${error}: ${reason}`),
  };
};

/** The answer with an error has no code (RFC 6749, 4.1.2.1). */
const whyNoCode = ({ oauth }: OAuthTools, words: Words, answer: ReadonlyMap<string, string>): RefusedConnect => {
  const error = answer.get('error');
  const { declined = [], scopes = [] } = oauth.pageErrors ?? {};
  if (error !== undefined && ['access_denied', ...declined].includes(error))
    return refused('You did not allow the access. Start again to allow it.');
  if (error !== undefined && [...ofApp, ...scopes].includes(error)) {
    return words.refusesApp(error, answer.get('error_description') ?? 'on its page of consent');
  }
  return refused(words.later);
};

export interface ConsentOptions extends OAuthTools {
  readonly client: NetworkClient;
  readonly offer: OfferAccounts;
  /** Of the network, as people write it. */
  readonly name: string;
  /** The network whose page of consent it is. Absent: its own. */
  readonly by?: Platform;
  /** What the network says of a code and of a client that it refuses, where it has other errors than those of RFC 6749. */
  readonly says?: Pick<DoctorTables, 'refusesCode' | 'refusesClient'>;
}

const missingOf = ({ oauth }: OAuthTools, scopes: readonly string[]): readonly string[] =>
  Object.entries(oauth.scopes).flatMap(([scope, { needed }]) =>
    needed === undefined || scopes.includes(scope) ? [] : [needed],
  );

/** What is kept of an account: its own token before that of the login, which stays beside it. */
const credentialOf = ({ oauth }: OAuthTools, { credential }: Tokens, person: string | null, offer: AccountOffer) => {
  const { own, kept = {} } = offer;
  const grant = oauth.grant === 'person' && person !== null ? { grant: person } : {};
  if (own === undefined) return { ...credential, secret: { ...credential.secret, ...kept }, ...grant };
  const account = oauth.mint === undefined ? {} : { account: offer.profile.externalId };
  const login = besideOwn(credential.secret);
  return {
    secret: { ...login, ...account, accessToken: own.token, accessUntil: own.until, ...kept },
    expiresAt: own.until,
    ...grant,
  };
};

const offeredOf = (
  options: ConsentOptions,
  tokens: Tokens,
  { person, accounts }: OfferedLogin,
  scopes: readonly string[],
): readonly OfferedAccount[] =>
  accounts.map((offer) => ({
    profile: { ...offer.profile, scopes: offer.scopes ?? scopes, consentEndsAt: offer.consentEndsAt ?? null },
    credential: credentialOf(options, tokens, person, offer),
    ...(offer.platform === undefined ? {} : { platform: offer.platform }),
    ...(offer.holder === undefined ? {} : { holder: offer.holder }),
    ...(offer.obstacle === undefined ? {} : { obstacle: offer.obstacle }),
  }));

/** What a guest is told of a login whose accounts could not be read. */
const unreadOf = (words: Words, name: string, answer: NotOk): RefusedConnect => {
  if (answer.kind === 'spent') {
    return refused(words.later, `${name} was not asked whose account it is: ${answer.reason}`);
  }
  if (answer.kind !== 'refused') return refused(words.later);
  const { row, status } = answer;
  if (row.renews === true || row.means === 'lapsed') return refused(status === 401 ? words.again : words.unread);
  const passes = ['limited', 'down', 'later', 'unpaid', 'sunset', 'ours'].includes(row.means);
  return refused(passes ? words.later : words.unread);
};

const revokeMs = 5_000;

export const consentOf = (options: ConsentOptions): ConsentConnector => {
  const { client, offer, oauth, name, says, by } = options;
  const words = wordsOf(name);
  /**
   * The consent of an account that is not connected must not stay alive at the network, unless its end would end the
   * other accounts of that person.
   */
  const unwanted = async (credential: NewCredential, why: RefusedConnect) => {
    // The time of the login may be over: that is one of the reasons.
    if (oauth.grant === 'account') await revokeTokens(options, credential, nobody, AbortSignal.timeout(revokeMs));
    return why;
  };
  const finish = async (
    asked: Parameters<typeof exchangeCode>[1],
    workspaceId: string,
    signal: AbortSignal,
  ): Promise<FinishedConsent> => {
    const exchanged = await exchangeCode(options, asked, signal);
    if (exchanged.kind === 'unavailable') return refused(words.later);
    if (exchanged.kind === 'refused') {
      const { error, reason } = exchanged;
      const isOfClient = says?.refusesClient.test(reason) === true && !says.refusesCode.test(reason);
      return ofApp.includes(error) || isOfClient ? words.refusesApp(error, reason) : refused(words.again);
    }
    const { credential, said } = exchanged;
    const refusal = (why: RefusedConnect) => unwanted(credential, why);
    // RFC 6749, 5.1: an answer without scopes grants what was asked for.
    const scopes = exchanged.scopes.length === 0 ? Object.keys(oauth.scopes) : exchanged.scopes;
    const missing = missingOf(options, scopes);
    if (missing.length > 0) return refusal(refused(words.missing(missing)));
    const token = textIn(credential.secret, 'accessToken') ?? '';
    const call = (ask: Ask) => client.callAs(token, ask, signal);
    const login = { call, token, said, scopes, workspaceId, endsAt: credential.expiresAt };
    const offered = await offer(login).catch(async (error: unknown) => {
      await refusal(refused(words.later));
      throw error;
    });
    if (offered.kind !== 'offered') return refusal(unreadOf(words, name, offered));
    const granted = offered.granted ?? scopes;
    const declined = missingOf(options, granted);
    if (declined.length > 0) return refusal(refused(words.missing(declined)));
    if (offered.accounts.length === 0) return refusal(refused(words.none));
    const { isCut = false } = offered;
    return { kind: 'accounts', accounts: offeredOf(options, exchanged, offered, granted), ...(isCut ? { isCut } : {}) };
  };
  return {
    kind: 'consent',
    title: by === undefined ? 'By signing in there' : `By signing in to ${rulesOf(by).name}`,
    ...(by === undefined ? {} : { by }),
    // The network asks who it is.
    usernameLabel: null,
    begin: async ({ redirectUri, state }) => {
      const verifier = newVerifier();
      return { kind: 'begun', url: authorizeUrl(options, { redirectUri, state, verifier }), kept: { verifier } };
    },
    finish: async ({ answer, kept, redirectUri, workspaceId }, signal) => {
      const code = answer.get('code') ?? '';
      const verifier = textIn(kept, 'verifier') ?? '';
      return code === ''
        ? whyNoCode(options, words, answer)
        : finish({ code, verifier, redirectUri }, workspaceId, signal);
    },
  };
};
