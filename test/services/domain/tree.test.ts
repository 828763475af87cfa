import { deepEqual, equal, notDeepEqual, ok } from 'node:assert/strict';
import { createHash } from 'node:crypto';
import fc from 'fast-check';
import {
  consistencyProof,
  emptyFrontier,
  emptyRoot,
  type Frontier,
  type Hash,
  inclusionProof,
  isConsistent,
  isIncluded,
  leafHash,
  leafOf,
  rootOf,
  type SubtreePlace,
  type Subtrees,
  withLeaf,
} from '#domain/tree.ts';
import { seeded } from '#test/support/seed.ts';
import { suite } from '#test/support/suite.ts';

/** The definition of RFC 9162, 2.1.1, word by word. */
const sha = (...parts: readonly Uint8Array[]): Hash => {
  const made = createHash('sha256');
  for (const part of parts) made.update(part);
  return made.digest();
};
const defined = (leaves: readonly Uint8Array[]): Hash => {
  const [first] = leaves;
  if (first === undefined) return sha();
  if (leaves.length === 1) return sha(Uint8Array.of(0), first);
  let k = 1;
  while (k * 2 < leaves.length) k *= 2;
  return sha(Uint8Array.of(1), defined(leaves.slice(0, k)), defined(leaves.slice(k)));
};

const textsOf = (size: number): readonly Buffer[] => Array.from({ length: size }, (_, at) => Buffer.from(`leaf ${at}`));

const grown = (leaves: readonly Uint8Array[]) => {
  const known = new Map<string, Hash>();
  const name = ({ level, index }: SubtreePlace) => `${level}/${index}`;
  let frontier: Frontier = emptyFrontier;
  for (const [index, bytes] of leaves.entries()) {
    const leaf = leafHash(bytes);
    known.set(name({ level: 0, index }), leaf);
    frontier = withLeaf(frontier, leaf, (place, hash) => known.set(name(place), hash));
  }
  const subtrees: Subtrees = async (place) => {
    const found = known.get(name(place));
    ok(found, `there is no subtree ${name(place)}`);
    return found;
  };
  return { frontier, subtrees };
};

suite('a tree of hashes', (t) => {
  t('has the roots of the published test vectors', () => {
    // certificate-transparency-go, merkle/testonly: the eight leaves and roots that logs of certificates are tested with.
    const inputs = ['', '00', '10', '2021', '3031', '40414243', '5051525354555657', '606162636465666768696a6b6c6d6e6f'];
    const roots = [
      '6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d',
      'fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125',
      'aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77',
      'd37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7',
      '4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4',
      '76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef',
      'ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c',
      '5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328',
    ];
    equal(emptyRoot.toString('hex'), 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855');
    for (const [at, root] of roots.entries()) {
      const { frontier } = grown(inputs.slice(0, at + 1).map((hex) => Buffer.from(hex, 'hex')));
      equal(rootOf(frontier).toString('hex'), root, `of ${at + 1} leaves`);
    }
  });

  t('has the root that its definition gives, for every size', () => {
    for (let size = 0; size <= 70; size += 1) {
      const leaves = textsOf(size);
      const { frontier } = grown(leaves);
      equal(frontier.size, size);
      deepEqual(rootOf(frontier), defined(leaves), `of ${size} leaves`);
    }
  });

  t('proves each leaf in each of its sizes, and no other one', async () => {
    const leaves = textsOf(40);
    const { subtrees } = grown(leaves);
    for (let size = 1; size <= leaves.length; size += 1) {
      const root = defined(leaves.slice(0, size));
      for (let index = 0; index < size; index += 1) {
        const proof = await inclusionProof(subtrees, index, size);
        const leaf = leafHash(leaves[index] as Buffer);
        ok(isIncluded(proof, { leaf, index, size, root }), `leaf ${index} of ${size}`);
        ok(!isIncluded(proof, { leaf: leafHash(Buffer.from('another')), index, size, root }));
        ok(!isIncluded(proof, { leaf, index: (index + 1) % size, size, root }) || size === 1);
        ok(!isIncluded([...proof, root], { leaf, index, size, root }));
        if (proof.length > 0) ok(!isIncluded(proof.slice(1), { leaf, index, size, root }));
      }
    }
  });

  t('proves that each size begins with each former one, and with no other list', async () => {
    const leaves = textsOf(40);
    const { subtrees } = grown(leaves);
    const rootAt = Array.from({ length: 41 }, (_, size) => defined(leaves.slice(0, size)));
    for (let size = 1; size <= leaves.length; size += 1) {
      const now = { size, root: rootAt[size] as Hash };
      for (let former = 1; former <= size; former += 1) {
        const proof = await consistencyProof(subtrees, former, size);
        ok(isConsistent(proof, { size: former, root: rootAt[former] as Hash }, now), `${former} of ${size}`);
        ok(!isConsistent(proof, { size: former, root: sha(Buffer.from('changed')) }, now));
        ok(!isConsistent(proof, { size: former, root: rootAt[former] as Hash }, { size, root: sha(Buffer.from('x')) }));
        if (former < size) ok(!isConsistent(proof, now, { size: former, root: rootAt[former] as Hash }));
      }
    }
  });

  t('needs 27 hashes for a leaf among a hundred million', async () => {
    const asked: SubtreePlace[] = [];
    const subtrees: Subtrees = async (place) => {
      asked.push(place);
      return leafHash(Buffer.from('any'));
    };
    equal((await inclusionProof(subtrees, 0, 1e8)).length, 27);
    ok((await inclusionProof(subtrees, 77_777_777, 1e8)).length <= 27);
    ok(asked.length < 80, `${asked.length} subtrees`);
  });

  t('tells two events apart wherever the border between two members lies', () => {
    const bytes = fc.uint8Array({ maxLength: 6 });
    const text = fc.string({ maxLength: 4 });
    const event = fc.record({
      id: text,
      stream: text,
      revision: fc.bigInt(0n, 20n),
      type: text,
      data: bytes,
      metadata: bytes,
    });
    const flat = (one: Parameters<typeof leafOf>[0]) => [
      one.id,
      one.stream,
      String(one.revision),
      one.type,
      [...one.data],
      [...one.metadata],
    ];
    fc.assert(
      fc.property(event, event, (one, other) => {
        const isSame = JSON.stringify(flat(one)) === JSON.stringify(flat(other));
        equal(leafOf(one).equals(leafOf(other)), isSame);
      }),
      { seed: seeded('leaves').seed },
    );
    const known = {
      id: 'a',
      stream: 'bc',
      revision: 1n,
      type: 'd',
      data: Buffer.from('ef'),
      metadata: Buffer.from('g'),
    };
    notDeepEqual(leafOf(known), leafOf({ ...known, id: 'ab', stream: 'c' }));
    notDeepEqual(leafOf(known), leafOf({ ...known, data: Buffer.from('e'), metadata: Buffer.from('fg') }));
  });
});
