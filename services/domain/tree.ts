import { hash } from 'node:crypto';

/**
 * The tree of hashes over a list that only grows (RFC 9162, 2.1): its root changes with every leaf, and short proofs show that
 * a leaf is in it, or that a longer list begins with a shorter one.
 */

/** 32 bytes of SHA-256. */
export type Hash = Buffer;

/** A subtree of 2^level leaves, the `index`th of its level from the left. */
export interface SubtreePlace {
  readonly level: number;
  readonly index: number;
}

/** @throws where the list has no such subtree */
export type Subtrees = (place: SubtreePlace) => Promise<Hash>;

const leafMark = Buffer.from([0]);
const nodeMark = Buffer.from([1]);

export const leafHash = (bytes: Uint8Array): Hash => hash('sha256', Buffer.concat([leafMark, bytes]), 'buffer');

const nodeHash = (left: Hash, right: Hash): Hash => hash('sha256', Buffer.concat([nodeMark, left, right]), 'buffer');

/** Of the list without leaves. */
export const emptyRoot: Hash = hash('sha256', '', 'buffer');

/**
 * What a growing list needs of its leaves: the hashes of the whole subtrees that it consists of, the largest first. Their sizes
 * are the binary digits of the number of leaves.
 */
export interface Frontier {
  readonly size: number;
  readonly hashes: readonly Hash[];
}

export const emptyFrontier: Frontier = { size: 0, hashes: [] };

/** @param onWhole gets each subtree that this leaf completes, above the leaf itself */
export const withLeaf = (
  { size, hashes }: Frontier,
  leaf: Hash,
  onWhole: (place: SubtreePlace, hash: Hash) => void = () => undefined,
): Frontier => {
  const kept = [...hashes];
  let right = leaf;
  let index = size;
  for (let level = 1; index % 2 === 1; level += 1) {
    right = nodeHash(kept.pop() as Hash, right);
    index = (index - 1) / 2;
    onWhole({ level, index }, right);
  }
  return { size: size + 1, hashes: [...kept, right] };
};

export const rootOf = ({ hashes }: Pick<Frontier, 'hashes'>): Hash =>
  hashes.length === 0 ? emptyRoot : hashes.reduceRight((right, left) => nodeHash(left, right));

/** The largest power of two below a number from 2 on. */
const splitOf = (size: number): number => 2 ** Math.floor(Math.log2(size - 1));

/** The root of the leaves from `from` up to `until` (exclusive). */
const rootBetween = async (subtrees: Subtrees, from: number, until: number): Promise<Hash> => {
  const size = until - from;
  const level = Math.log2(size);
  if (Number.isInteger(level) && from % size === 0) return subtrees({ level, index: from / size });
  const middle = from + splitOf(size);
  const [left, right] = await Promise.all([rootBetween(subtrees, from, middle), rootBetween(subtrees, middle, until)]);
  return nodeHash(left, right);
};

/**
 * The hashes beside the way from a leaf to the root of the first `size` leaves, from the leaf up (2.1.3.1).
 * @param index of the leaf, from 0 and below `size`
 */
export const inclusionProof = async (subtrees: Subtrees, index: number, size: number): Promise<readonly Hash[]> => {
  // Asked for at once: those that keep subtrees answer together what lies side by side.
  const beside: Promise<Hash>[] = [];
  let [from, until] = [0, size];
  while (until - from > 1) {
    const middle = from + splitOf(until - from);
    const isLeft = index < middle;
    beside.unshift(isLeft ? rootBetween(subtrees, middle, until) : rootBetween(subtrees, from, middle));
    [from, until] = isLeft ? [from, middle] : [middle, until];
  }
  return Promise.all(beside);
};

/** That the list of `size` leaves begins with that of `former` leaves, 1 to `size` (2.1.4.1). */
export const consistencyProof = async (subtrees: Subtrees, former: number, size: number): Promise<readonly Hash[]> => {
  const proof: Promise<Hash>[] = [];
  let [from, until] = [0, size];
  while (former < until) {
    const middle = from + splitOf(until - from);
    const isLeft = former <= middle;
    proof.unshift(isLeft ? rootBetween(subtrees, middle, until) : rootBetween(subtrees, from, middle));
    [from, until] = isLeft ? [from, middle] : [middle, until];
  }
  // The former root is known to whoever asks, where it is one subtree of the list.
  return Promise.all(from === 0 ? proof : [rootBetween(subtrees, from, until), ...proof]);
};

/** Whether the proof leads from the leaf to the root (2.1.3.2). */
export const isIncluded = (
  proof: readonly Hash[],
  {
    leaf,
    index,
    size,
    root,
  }: { readonly leaf: Hash; readonly index: number; readonly size: number; readonly root: Hash },
): boolean => {
  if (index >= size) return false;
  let [place, last] = [index, size - 1];
  let found = leaf;
  for (const beside of proof) {
    if (last === 0) return false;
    if (place % 2 === 1 || place === last) {
      found = nodeHash(beside, found);
      while (place % 2 === 0 && place !== 0) [place, last] = [place / 2, Math.floor(last / 2)];
    } else found = nodeHash(found, beside);
    [place, last] = [Math.floor(place / 2), Math.floor(last / 2)];
  }
  return last === 0 && found.equals(root);
};

/** Whether the proof shows that the longer list begins with the shorter one (2.1.4.2). */
export const isConsistent = (
  proof: readonly Hash[],
  former: { readonly size: number; readonly root: Hash },
  { size, root }: { readonly size: number; readonly root: Hash },
): boolean => {
  if (former.size > size || former.size === 0) return false;
  if (former.size === size) return proof.length === 0 && former.root.equals(root);
  const isSubtree = Number.isInteger(Math.log2(former.size));
  const [first, ...others] = isSubtree ? [former.root, ...proof] : proof;
  if (first === undefined) return false;
  let [place, last] = [former.size - 1, size - 1];
  while (place % 2 === 1) [place, last] = [Math.floor(place / 2), Math.floor(last / 2)];
  let [begun, whole] = [first, first];
  for (const beside of others) {
    if (last === 0) return false;
    if (place % 2 === 1 || place === last) {
      [begun, whole] = [nodeHash(beside, begun), nodeHash(beside, whole)];
      while (place % 2 === 0 && place !== 0) [place, last] = [place / 2, Math.floor(last / 2)];
    } else whole = nodeHash(whole, beside);
    [place, last] = [Math.floor(place / 2), Math.floor(last / 2)];
  }
  return last === 0 && begun.equals(former.root) && whole.equals(root);
};

/** Bytes of a leaf: each text behind its length, so that no two events have the same. */
export interface Leaf {
  readonly id: string;
  readonly stream: string;
  readonly revision: bigint;
  readonly type: string;
  readonly data: Uint8Array;
  readonly metadata: Uint8Array;
}

/** The hash of an event as the store's port returns it: no position, no time of the store, nothing of how it is packed. */
export const leafOf = ({ id, stream, revision, type, data, metadata }: Leaf): Hash => {
  const texts = [id, stream, String(revision), type];
  const room = texts.reduce(
    (sum, text) => sum + 8 + Buffer.byteLength(text),
    1 + 8 + data.length + 8 + metadata.length,
  );
  const bytes = Buffer.allocUnsafe(room);
  let at = leafMark.copy(bytes);
  const lengthOf = (length: number): void => {
    // 64 bits; of no leaf more than the lower 32.
    at = bytes.writeUInt32BE(length, bytes.writeUInt32BE(0, at));
  };
  for (const text of texts) {
    lengthOf(Buffer.byteLength(text));
    at += bytes.write(text, at);
  }
  for (const part of [data, metadata]) {
    lengthOf(part.length);
    bytes.set(part, at);
    at += part.length;
  }
  return hash('sha256', bytes, 'buffer');
};
