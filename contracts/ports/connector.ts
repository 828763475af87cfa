/** How a guest connects an account of a network by a form: an app password, or a token of a bot. */
import type { NewCredential } from './credentials.ts';

export interface ConnectField {
  /** Name in the form; `username` and `timezone` are those of every network. */
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

export type Connected =
  | { readonly kind: 'connected'; readonly profile: ConnectedProfile; readonly credential: NewCredential }
  /** `words`: for the guest, what is wrong and what to do. */
  | { readonly kind: 'refused'; readonly words: string };

export interface Connector {
  /** For the guest: what the network calls the username here. */
  readonly usernameLabel: string;
  /** What else the guest gives. All of it is secret: it is never shown again, and never written down. */
  readonly secrets: readonly ConnectField[];
  /** Asks the network. @param secrets by the name of the field */
  connect(username: string, secrets: ReadonlyMap<string, string>, signal: AbortSignal): Promise<Connected>;
}
