/** The ways in which a guest connects an account of a network. A network may have several; the page offers them in order. */
import type { Platform } from '#schemas/common.ts';
import type { NewCredential } from './credentials.ts';
import type { Json } from './platform.ts';

export interface ConnectField {
  /** Name in the form; `platform`, `way`, `username` and `timezone` are those of every network. */
  readonly name: string;
  readonly label: string;
  readonly hint: string | null;
  readonly maxLength: number;
}

export interface ConnectedProfile {
  readonly externalId: string;
  readonly username: string | null;
  readonly displayName: string | null;
  readonly avatarUrl: string | null;
  /** Permissions that the owner granted, in the network's own words. */
  readonly scopes: readonly string[];
  /** ISO 8601, when the consent itself ends; null: it lasts for as long as it is refreshed. */
  readonly consentEndsAt: string | null;
}

/** An account for which the network has just answered. */
export interface OfferedAccount {
  /** Of which network it is, where one consent is for several. Absent: that of the connector. */
  readonly platform?: Platform;
  readonly profile: ConnectedProfile;
  readonly credential: NewCredential;
  /** What it is, where a login may have several kinds. */
  readonly holder?: 'person' | 'page' | 'organization' | 'channel';
  /** For the guest: why it cannot be connected, such as a role that may not publish. Absent: it can. */
  readonly obstacle?: string;
}

export type RefusedConnect = {
  readonly kind: 'refused';
  /** For the guest: what is wrong and what to do. */
  readonly words: string;
  /** For the operator's log: what only an operator can mend, without secrets. Absent: it is the guest's matter. */
  readonly operator?: string;
};

export type Connected = ({ readonly kind: 'connected' } & OfferedAccount) | RefusedConnect;

/** The guest gives an app password, or a token of a bot. */
export interface FormConnector {
  readonly kind: 'form';
  /** Heading of this way where the network has several. */
  readonly title: string;
  /** For the guest: what the network calls the username here. */
  readonly usernameLabel: string;
  /** What else the guest gives. All of it is secret: it is never shown again, and never written down. */
  readonly secrets: readonly ConnectField[];
  /** Asks the network. @param secrets by the name of the field */
  connect(username: string, secrets: ReadonlyMap<string, string>, signal: AbortSignal): Promise<Connected>;
}

/** What is kept until the guest comes back; it may be secret (a verifier, a key). At most 16 KiB as JSON. */
export type KeptConsent = { readonly [name: string]: Json };

export type BegunConsent =
  | { readonly kind: 'begun'; readonly url: string; readonly kept: KeptConsent }
  | RefusedConnect;

/** A login may have several accounts: the guest chooses among those. */
export type FinishedConsent =
  | {
      readonly kind: 'accounts';
      readonly accounts: readonly OfferedAccount[];
      /** The login has more than these, of which the guest is told. Absent: it has none. */
      readonly isCut?: boolean;
    }
  | RefusedConnect;

/** The guest's browser goes to the network, which sends it back to us with an answer (OAuth 2). */
export interface ConsentConnector {
  readonly kind: 'consent';
  readonly title: string;
  /** The network on whose page the guest signs in, where it is another one: Facebook, for an account of Instagram. Absent: its own. */
  readonly by?: Platform;
  /** What the guest types before; null: the network asks who it is by itself. */
  readonly usernameLabel: string | null;
  /**
   * @param username null where `usernameLabel` is
   * @param state ours, which the network sends back; bound to the invite, the network and the browser by the caller
   */
  begin(
    asked: { readonly username: string | null; readonly redirectUri: string; readonly state: string },
    signal: AbortSignal,
  ): Promise<BegunConsent>;
  /** Once. @param answer the query with which the browser came back, errors included; its `state` was compared */
  finish(
    returned: {
      readonly answer: ReadonlyMap<string, string>;
      readonly kept: KeptConsent;
      readonly redirectUri: string;
      /** Whose guest it is: a network may bill what is asked here. */
      readonly workspaceId: string;
    },
    signal: AbortSignal,
  ): Promise<FinishedConsent>;
  /** Documents that the network reads from us, by their path below `/connect/`. @param origin of the redirect address */
  documents?(origin: string): Readonly<Record<string, Json>>;
}

/** The guest posts a code of ours where only they may post. */
export interface CodeConnector {
  readonly kind: 'code';
  readonly title: string;
  /**
   * Durable when it resolves. `steps`: for the guest, in their order; one of them holds the message.
   * @param workspaceId whose guest it is: a workspace has a share of the codes that are open
   */
  begin(
    workspaceId: string,
    signal: AbortSignal,
  ): Promise<
    | {
        readonly kind: 'begun';
        readonly code: string;
        /** What the guest posts, word for word. */
        readonly message: string;
        readonly steps: readonly string[];
      }
    | RefusedConnect
  >;
  /** Accounts for which the code has spoken so far. An empty list: none yet. */
  found(code: string, signal: AbortSignal): Promise<FinishedConsent>;
  /** The guest has connected, or gave up: the code opens nothing more. */
  forget(code: string): Promise<void>;
}

export type Connector = FormConnector | ConsentConnector | CodeConnector;
