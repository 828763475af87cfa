import type { Platform } from '#schemas/common.ts';
import type { Imitation } from './imitation.ts';
import * as networks from './networks.ts';

export const imitations: { readonly [P in Platform]: Imitation } = networks;
