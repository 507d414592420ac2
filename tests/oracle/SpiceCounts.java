import java.io.*;
import java.net.URL;
import java.util.*;
import edu.anu.spice.*;
import edu.cmu.meteor.aligner.SynonymDictionary;
import edu.cmu.meteor.util.Constants;
import org.json.simple.*;
import org.json.simple.parser.JSONParser;

/** Reads [[tuples of the text], [tuples of the references]] a line; prints matched, own and reference propositions. */
public class SpiceCounts {
    static SceneGraph graph(SynonymDictionary d, JSONArray tuples) {
        SceneGraph g = new SceneGraph(d, true);
        for (Object t : tuples) {
            ArrayList<String> parts = new ArrayList<String>();
            for (Object p : (JSONArray) t) parts.add((String) p);
            g.addTuple(parts);
        }
        return g;
    }

    public static void main(String[] args) throws Exception {
        String dir = Constants.DEFAULT_SYN_DIR_URL.toString();
        SynonymDictionary d = new SynonymDictionary(new URL(dir + "/english.exceptions"), new URL(dir + "/english.synsets"),
                                                    new URL(dir + "/english.relations"));
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, "UTF-8"));
        for (String line; (line = in.readLine()) != null;) {
            JSONArray q = (JSONArray) new JSONParser().parse(line);
            Evaluation e = new Evaluation(new TupleSet(graph(d, (JSONArray) q.get(0))), new TupleSet(graph(d, (JSONArray) q.get(1))), false, true);
            System.out.println(e.tp + " " + (e.tp + e.fp) + " " + (e.tp + e.fn));
        }
    }
}
