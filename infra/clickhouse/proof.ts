import { createHmac } from 'node:crypto';

/** How an engine shows that it has a password to somebody who has it too, without either of them telling it. */

export const proofPath = '/proof';

export const proofOf = (password: string, nonce: string): string =>
  createHmac('sha256', password).update(`postline engine ${nonce}`).digest('hex');
