import type { Secrets } from './secrets.ts';

/**
 * The signing secret of an endpoint is derived from its id, the generation and the key version that the generation's
 * event names: it is never stored, and a repeat derives the same.
 */

export interface Generation {
  readonly generation: number;
  readonly keyVersion: string;
}

/**
 * `whsec_` + base64 of 32 bytes, as shown to the owner. Standard Webhooks signs with the decoded bytes.
 * @throws when SECRET_KEY lacks the key version
 */
export const webhookSecret = (secrets: Secrets, webhookId: string, { generation, keyVersion }: Generation): string =>
  `whsec_${secrets.mac('secrets', `webhook\n${webhookId}\n${generation}`, keyVersion).toString('base64')}`;
