import { createHmac } from 'node:crypto';

/** How an engine proves that it knows a password to a process that knows it too, without either sending it. */

export const proofPath = '/proof';

export const proofOf = (password: string, nonce: string): string =>
  createHmac('sha256', password).update(`postline engine ${nonce}`).digest('hex');
