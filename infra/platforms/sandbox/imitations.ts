import type { NetworkInbox } from '#contracts/ports/network-inbox.ts';
import type { Platform } from '#schemas/common.ts';
import type { MadeCall, Said } from './calls.ts';
import type { Imitation } from './imitation.ts';
import * as networks from './networks.ts';

export const imitations: { readonly [P in Platform]: Imitation } = networks;

/**
 * How the networks of the sandbox call us.
 * @param secret known to this installation alone: whoever has it ends the accounts of every test workspace
 */
export const sandboxInboxes = (secret: string): Readonly<Partial<Record<Platform, NetworkInbox>>> =>
  Object.fromEntries(
    Object.entries(imitations).flatMap(([platform, { calls }]) =>
      calls === undefined ? [] : [[platform, calls.inbox(secret)]],
    ),
  );

/** A call as the network makes it. Null: it makes none of the kind. */
export const sandboxCall = (platform: Platform, secret: string, said: Said): MadeCall | null =>
  imitations[platform].calls?.make(secret, said) ?? null;
